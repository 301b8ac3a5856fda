"""The ledger: tables of what was measured, and cells of the project's own. `make results` runs it in a checkout."""
