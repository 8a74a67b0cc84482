-- PUBLIC's rights on the schema.
select lower(g.privilege_type)
from pg_namespace n, lateral aclexplode(n.nspacl) g
where n.nspname = 'tocsin' and g.grantee = 0
