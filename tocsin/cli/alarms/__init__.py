"""`tocsin alarms`, `tocsin ack` and `tocsin snooze`."""
