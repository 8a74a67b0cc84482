"""Delivery: how a message reaches the outside world.

Guarantees: every connection goes through one guard (`egress`), to an address that was checked after its name
was resolved. A delivery ends as one of three outcomes: delivered, retryable, permanent. Secrets are
references until the last moment and never part of a text that is kept. Templates reach their data and
nothing else, and end.

Why apart: what is here knows no database and no record log. It is given a target, a message, an
idempotency key and an instant, and gives back a plain outcome.
"""
