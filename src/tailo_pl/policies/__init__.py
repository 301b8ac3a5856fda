"""A trained policy on its own: loaded, exported, filmed."""
