"""The foundation of every package: settings, Postgres, NATS, supervised services, errors, logs.

Nothing in here knows about timers, events or rules, and nothing in here reads the wall clock.
"""
