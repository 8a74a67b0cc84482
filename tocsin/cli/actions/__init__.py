"""`tocsin actions`, `tocsin history` and `tocsin stats`."""
