"""From overrides to a checked experiment."""
