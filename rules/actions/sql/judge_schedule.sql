-- A one-shot schedule whose own action is dead is `failed`; tried again, or completed after all, it is `fired`.
-- Before the action's row in the order of the house. Index: schedule's (owner, name).
update tocsin.schedule s
set status = %(status)s, updated_at = tocsin.instant()
where s.owner = %(owner)s and s.name = %(name)s and s.recurrence ? 'at'
  and s.status in ('fired', 'failed') and s.status <> %(status)s
