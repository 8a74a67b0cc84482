-- The newest acts first; optionally of one kind and name.
select id, at, who, via, verb, kind, owner, name, old, new
from tocsin.audit
where (%(kind)s::text is null or kind = %(kind)s) and (%(name)s::text is null or name = %(name)s)
order by id desc
limit %(limit)s
