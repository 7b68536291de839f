"""From a configuration to objects."""
