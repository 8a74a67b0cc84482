"""`tocsin up`."""
