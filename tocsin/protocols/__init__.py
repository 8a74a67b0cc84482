"""The protocols of other products: pure translations of their messages into Tocsin's.

Guarantee: every function is bounded in bytes, count and depth, reads no clock and connects to
nothing. A message that cannot be read raises `InvalidInput`; a part of a message that cannot be used
is a problem with its reason and does not affect the other parts. `tocsin.api` has the routes, which
authorise and send.
"""
