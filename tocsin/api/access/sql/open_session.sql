-- Begins a session of a person that was authenticated elsewhere, with its audit row.
select tocsin.open_session(%(name)s, %(digest)s, %(grants)s, %(source)s, %(expires_at)s)
