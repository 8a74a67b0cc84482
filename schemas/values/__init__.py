"""Types of single values in documents and messages, with their validation."""
