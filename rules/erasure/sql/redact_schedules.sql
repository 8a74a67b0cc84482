-- The contents of ended schedules of an owner.
update tocsin.schedule
set payload = '{}', title = null, description = null, runbook_url = null
where owner = %(owner)s and status not in ('active', 'paused')
  and (payload <> '{}' or title is not null or description is not null or runbook_url is not null)
