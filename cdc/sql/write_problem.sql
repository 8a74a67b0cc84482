-- Store the current problem, or null. Locks the one row, so that two publishers report a change
-- once. Returns the previous problem and its begin.
with before as (select problem, since from tocsin.cdc_report for update)
update tocsin.cdc_report r
set problem = %(problem)s, detail = %(detail)s, remedy = %(remedy)s, seq = %(seq)s,
    since = case when before.problem is distinct from %(problem)s::text then
                 case when %(problem)s::text is not null then tocsin.instant() end
            else before.since end
from before
returning before.problem, before.since
