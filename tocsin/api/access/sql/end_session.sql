-- Ends a session. False if there is none.
select tocsin.end_session(%(digest)s)
