"""The report of one or more runs: what they found, what came out, and what another choice would have changed."""
