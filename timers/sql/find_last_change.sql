-- The actor and the instant of the last change of a schedule. Index: audit_subject.
select who, via, at
from tocsin.audit
where kind = 'schedule' and owner = %(owner)s and name = %(name)s
order by id desc
limit 1
