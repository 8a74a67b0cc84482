"""Commands about runs of actions: `actions`, `history` and `stats`."""
