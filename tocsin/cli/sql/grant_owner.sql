-- Let a role use the owners of a pattern. No row: it could already.
insert into tocsin.owner_grant (grantee, pattern, granted_by)
values (%(grantee)s, %(pattern)s, %(who)s)
on conflict do nothing
returning true
