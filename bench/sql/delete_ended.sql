-- Deletes ended rows by the same indexes, without checking whether a record of them is left.
with links as (
    delete from tocsin.action_event l using tocsin.action a where l.action_id = a.id and a.ended_at < '2026-02-01Z'
),
actions as (delete from tocsin.action where ended_at < '2026-02-01Z')
delete from tocsin.alarm where state = 'resolved' and resolved_at < '2026-02-01Z'
