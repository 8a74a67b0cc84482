"""`tocsin up`: an instance in one process, with its own servers, and what it shows."""
