-- The signature of a link that acknowledges an alarm.
select tocsin.link_signature(%(alarm_id)s, %(expires_s)s, %(channel)s)
