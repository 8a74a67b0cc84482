-- End a session, with its audit row. False if it has ended. Locks its row.
select tocsin.revoke_session(%(id)s, %(revoked_by)s, %(via)s)
