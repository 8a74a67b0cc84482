-- Records that this process handles a message. Returns how many processes have died over it. A death
-- counts if the row is that of another process which handled nothing else that is listed: otherwise
-- the other message may have ended it. Locks the rows of this process; removes rows that are a week old.
-- Index: message_attempt_process, message_attempt_began.
with others as (
    update tocsin.message_attempt set is_shared = true
    where process = %(process)s and (consumer, seq) <> (%(consumer)s, %(seq)s::bigint)
    returning seq
),
old as (
    delete from tocsin.message_attempt
    where began_at < (select tocsin.instant()) - interval '7 days' and process <> %(process)s
        and (consumer, seq) <> (%(consumer)s, %(seq)s::bigint)
)
insert into tocsin.message_attempt as m (consumer, seq, process, is_shared, began_at)
values (%(consumer)s, %(seq)s, %(process)s, exists (select from others), tocsin.instant())
on conflict (consumer, seq) do update set
    process = excluded.process,
    is_shared = excluded.is_shared,
    began_at = excluded.began_at,
    deaths = m.deaths + case when m.process <> excluded.process and not m.is_shared then 1 else 0 end
returning m.deaths
