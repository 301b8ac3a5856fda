"""The pictures of the README and the documentation: made from the ledger, from data and from finished runs."""
