-- Locks all actions that a batch will change, in key order: several kinds of work lock some of them
-- one after the other.
select from tocsin.action where id = any(%(ids)s::uuid[]) order by id for update
