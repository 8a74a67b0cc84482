-- See tocsin.schedule_once in the migrations. `who` defaults to the role of the database.
select id, status, generation, fire_at, deduped
from tocsin.schedule_once(
    owner => %(owner)s::text, name => %(name)s::text, at => %(at)s::timestamptz, payload => %(payload)s::jsonb,
    type => %(type)s::text, action => %(action)s::text, created_by => coalesce(%(who)s::text, current_user::text),
    created_via => 'client', replace => %(replace)s::boolean, if_generation => %(if_generation)s::bigint,
    retry => %(retry)s::jsonb, title => %(title)s::text, description => %(description)s::text,
    runbook_url => %(runbook_url)s::text)
