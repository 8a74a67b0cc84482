"""`tocsin calendar show | import | holidays`."""
