"""`tocsin doctor`."""
