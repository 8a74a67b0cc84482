-- Which role may use which owners.
select grantee, pattern, granted_by, granted_at from tocsin.owner_grant order by grantee, pattern
