"""Access: who calls, by its credentials, and what it may do.

A credential becomes a `Caller` (`credentials.py`), the policy decides with its grants, and a handler
gets an `Access` that is bound to one operation (`permission.py`). Nothing takes a name or a role from a
header or a body.
"""
