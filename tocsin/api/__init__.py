"""The HTTP API: everything that the command line can do to a running instance, for programs.

Guarantees:
- Every route names its operation of `tocsin.policy`, or is marked as public with a reason. The app
  does not start with a route that has neither (`routes.py`).
- An answer holds nothing of an owner that the caller may not view: the statements filter by the
  patterns of its grants. What it may not view is 404, as if it did not exist.
- Every error is `application/problem+json` (RFC 9457) with the words of the command line.
- Whatever a client sends, or does not send, costs bounded memory and time (`limits.py`,
  `protocol.py`).

`app.py` puts the parts together, and `service.py` runs them. A resource is one file in `v1/`; to add
routes of another package, add its `RouteGroup` to `routes.py`.
"""
