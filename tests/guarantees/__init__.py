"""Proof that the tests hold the guarantees of docs/guarantees.md: each is broken once, and its tests fail."""
