-- Stores a one-time login link and its audit row.
select tocsin.add_login(%(name)s, %(digest)s, %(grants)s, %(expires_at)s, %(created_by)s, %(via)s)
