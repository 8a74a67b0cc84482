"""`tocsin calendar show | import`."""
