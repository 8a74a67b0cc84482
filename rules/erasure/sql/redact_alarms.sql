-- The contents of resolved alarms of an owner.
update tocsin.alarm
set payload = '{}', acknowledged_note = null, resolved_reason = null, version = version + 1
where owner = %(owner)s and state = 'resolved'
  and (payload <> '{}' or acknowledged_note is not null or resolved_reason is not null)
