-- Event types that only Tocsin writes. A schedule of a service cannot have one, so that no service can
-- write a transition of an alarm or the end of a silence.

create function tocsin.is_reserved_type(type text) returns boolean
language sql immutable parallel safe
return type ~ '^(alarm|schedule|rules|notification|silence|maintenance|inhibit|action|pipeline|system|cdc)-'
       or type in ('series-forgotten', 'log-pruned', 'log-gap-recorded', 'stream-rebuilt');
comment on function tocsin.is_reserved_type is
    'Whether only Tocsin itself writes events of a type. schemas/values/event_types.py lists the same types.';

create function tocsin.refuse_reserved_type() returns trigger
language plpgsql
as $$
begin
    raise exception 'the event type % of schedule % is reserved for events of tocsin itself: choose another type',
        quote_literal(new.type), quote_literal(new.name) using errcode = 'TS002';
end
$$;
comment on function tocsin.refuse_reserved_type is 'Raises TS002. The trigger schedule_type_is_free calls it.';

-- The condition is evaluated without a call for the default type. The schedules that end silences
-- have an owner of their own.
create trigger schedule_type_is_free
before insert or update of type on tocsin.schedule
for each row
when (new.type <> 'schedule-fired' and not (new.owner = 'tocsin:silences' and new.type = 'silence-ended')
      and tocsin.is_reserved_type(new.type))
execute function tocsin.refuse_reserved_type();
