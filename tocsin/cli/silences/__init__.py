"""`tocsin silence add | list | expire`."""
