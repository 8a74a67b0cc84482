"""Delivers messages to outside services, and probes them.

Guarantees: every connection passes one guard (`egress`) and goes to an address that was checked
after its name was resolved. A delivery has one of three outcomes: delivered, retryable, permanent.
Secrets are references until they are sent, and never part of a text that is stored or logged.

Why a package of its own: nothing here knows the database or the record log. `deliver` takes a
target, a message, an idempotency key and an instant, and returns an outcome. The steps of actions
(`rules.actions.steps`) and `tocsin channels test` call it.
"""
