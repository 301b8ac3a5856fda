"""The paper's figures: listed, run cell by cell, kept as results, judged and drawn."""
