"""`tocsin doctor`: its command, the checks and what they read from the servers."""
