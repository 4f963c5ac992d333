"""The description of a method that has a name, and its settings."""
