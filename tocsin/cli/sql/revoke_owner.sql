-- Remove the grant of a pattern. No row: there was none.
delete from tocsin.owner_grant where grantee = %(grantee)s and pattern = %(pattern)s
returning true
