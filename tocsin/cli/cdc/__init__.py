"""`tocsin cdc`."""
