"""Permissions in NATS: one role per component, and one per producer and service of others.

Guarantee: the permissions in `deploy/nats/permissions.conf`, those of the embedded server and the
checks of `tocsin doctor` come from the same table (`roles`). No running service can create, change,
purge or delete a stream.

Why accounts and not only permissions: NATS does not check the subject to which a reply goes. A user
that may publish anything to a stream can name any subject as the reply, and the server publishes the
acknowledgement there: into the record stream, or into the lease of another service. Between two
accounts a reply never leaves the account of the one that asked. So every role that needs no stream
of its own has an account of its own, and reaches exactly the subjects that it imports (`config`).
"""
