-- A chunk of old audit rows, and whether they may be deleted: all but the one that says how an
-- existing schedule came to be what it was when the audit begins. Locks nothing. Index: audit_at,
-- audit_subject.
select a.at::text, a.id::text,
       not (a.kind = 'schedule'
            and exists (select from tocsin.schedule s where s.owner = a.owner and s.name = a.name)
            and not exists (
                select from tocsin.audit n
                where n.kind = a.kind and n.name = a.name and n.owner = a.owner and n.id > a.id and n.at < %(audit_until)s))
from (
    select * from tocsin.audit
    where at < %(audit_until)s and (at, id) > ((%(after)s::text[])[1]::timestamptz, (%(after)s::text[])[2]::bigint)
    order by at, id
    limit %(limit)s
) a
order by a.at, a.id
