-- All actions that a batch will change, in key order: its kinds of work lock them one after the other, others by key.
select from tocsin.action where id = any(%(ids)s::uuid[]) order by id for update
