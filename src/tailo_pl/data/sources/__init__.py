"""Where recordings come from: one file per source."""
