"""Messages on NATS subjects: events, steps, datapoints, reports, dead letters."""
