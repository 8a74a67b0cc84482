"""Roles of Postgres: one per component, with the rights that it needs and no others.

Guarantees: `grants.py` decides for every table and function of the schema which role may use it; what
it does not mention has no grant. `create` makes the database so, in one transaction, and may run again
after each migration. `check` returns every difference between the decision and the database, including
rights of PUBLIC, and objects without a decision.

Why one place: an object that a migration adds must not be forgotten, and a test compares this list with
the schema. `deploy/postgres/roles.sql` is the same as a script: `python -m migrations.roles` writes it.
"""
