"""`tocsin schedules` and `tocsin schedule`."""
