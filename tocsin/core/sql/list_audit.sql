-- Entries of the audit, the newest first; optionally of one name, or behind an entry. Locks nothing.
-- Index: audit's key.
select id, at, who, claimed, via, verb, kind, owner, name, old, new
from tocsin.audit
where (%(name)s::text is null or name = %(name)s)
  and (%(after_id)s::bigint is null or id < %(after_id)s)
order by id desc
limit %(limit)s
