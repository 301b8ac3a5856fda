"""The ledger: what the project has measured, one file for each cell. `make results` runs it in a checkout."""
