-- The changes of one schedule, oldest first. Locks nothing. Index: audit_subject.
select at, who, via, verb, new
from tocsin.audit
where kind = 'schedule' and name = %(name)s and owner = %(owner)s
order by id
