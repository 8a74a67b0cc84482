"""Commands about heartbeats."""
