-- Arm the ticks that end silences, in key order. The schedule of a silence has its id.
insert into tocsin.timer (kind, ref, key, fire_at, nominal_at, generation, identity, identity_at)
select 'schedule-tick', item.ref, '', greatest(item.ends_at, (select tocsin.instant())), item.ends_at, 1, item.identity,
       item.ends_at
from unnest(%(ids)s::text[], %(ends_at)s::timestamptz[], %(identities)s::text[]) as item (ref, ends_at, identity)
order by item.ref
