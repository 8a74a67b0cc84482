-- What operators look at: parked timers, and workers that run and cannot work.

-- Parked timers are few, and asked for by doctors and metrics: finding them must not walk over a million others.
create index timer_parked on tocsin.timer (kind) where parked_at is not null;

-- Why a worker cannot work. Such a row is there to be read: its worker takes no part in the lanes.
alter table tocsin.ingest_worker add column problem text;
