-- Insert a schedule. No row: another transaction has added one with this owner and name.
insert into tocsin.schedule (id, owner, name, recurrence, spread, catch_up, "window", grace, max_catch_up, type, payload,
                             action, retry, title, description, runbook_url, status, source, created_by, created_via, created_at, updated_at)
values (%(id)s, %(owner)s, %(name)s, %(recurrence)s, %(spread)s, %(catch_up)s, %(window)s, %(grace)s,
        %(max_catch_up)s, %(type)s, %(payload)s, %(action)s, %(retry)s, %(title)s, %(description)s,
        %(runbook_url)s, %(status)s, %(source)s, %(who)s, %(via)s, %(now)s, %(now)s)
on conflict on constraint schedule_owner_name_key do nothing
