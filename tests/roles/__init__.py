"""Tests of Postgres roles: what each may do, and what a stranger may not."""
