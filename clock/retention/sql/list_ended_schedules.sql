-- A chunk of schedules that ended before the log begins, and whether they may be deleted: no
-- document names them, and no run of theirs is left. `schedule:` is a text form of
-- schemas/values/rule_ref.py. Locks nothing. Index: schedule_ended, rule_version_current,
-- action_of_rule.
select s.updated_at::text, s.id::text,
       not exists (
           select from tocsin.rule_version v
           where v.kind = 'schedule' and v.name = s.name and v.until_seq is null and coalesce(v.document ->> 'owner', '') = s.owner)
       and not exists (select from tocsin.action a where a.action_rule = 'schedule:' || s.name and a.owner = s.owner)
from (
    select * from tocsin.schedule
    where status in ('fired', 'ended', 'cancelled', 'failed') and updated_at < %(horizon_at)s
      and (updated_at, id) > ((%(after)s::text[])[1]::timestamptz, (%(after)s::text[])[2]::uuid)
    order by updated_at, id
    limit %(limit)s
) s
order by s.updated_at, s.id
