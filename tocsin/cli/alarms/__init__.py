"""`tocsin alarms`, `tocsin ack`, `tocsin snooze` and `tocsin resolve`."""
