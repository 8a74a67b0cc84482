"""What an operator watches: figures of this process and of the house, on a page of our own.

Guarantee: a page never stalls or fails the service that it speaks of. It answers while Postgres is away, with
`tocsin_database_up 0` and what the process knows of itself; the house is read at most once a second, and figures are
shown for at most ten.
"""
