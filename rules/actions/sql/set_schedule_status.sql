-- Set the status of a one-shot schedule: `failed` while its own action is dead, and `fired` after a
-- retry or a completion. Runs before the row of the action is locked, by the global order of locks.
-- Index: schedule's (owner, name).
update tocsin.schedule s
set status = %(status)s, updated_at = tocsin.instant()
where s.owner = %(owner)s and s.name = %(name)s and s.recurrence ? 'at'
  and s.status in ('fired', 'failed') and s.status <> %(status)s
