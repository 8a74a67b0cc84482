"""Explains why a schedule did or did not fire, from records and the audit."""
