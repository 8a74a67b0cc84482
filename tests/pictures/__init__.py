"""Pictures: the geometry of every drawing, for any data."""
