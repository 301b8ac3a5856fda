"""tailo_pl: offline imitation learning from observations."""
