-- Delete the rows of fill_ended in one statement, by the indexes that retention uses, without
-- checking whether a record of them is left: the upper limit for bench/prune.py.
with links as (
    delete from tocsin.action_event l using tocsin.action a where l.action_id = a.id and a.ended_at < %(until)s
),
actions as (delete from tocsin.action where ended_at < %(until)s)
delete from tocsin.alarm where state = 'resolved' and resolved_at < %(until)s
