"""Routes that clients of other products use: their paths, their credentials, their status codes.

`tocsin.protocols` translates the bodies. These modules authorise each owner, send, and answer as the
product does whose client asks: which status makes the client send again is part of its protocol.

Guarantee: a part of a request that is rejected does not affect the other parts. It is named in the
answer and becomes a dead letter of kind `request`. A server that does not answer is 503, and no client
drops its data for that.
"""
