-- A worker says why it cannot work; a row for each process, however often it tries.
insert into tocsin.lane_worker as w (holder, since, seen_until, problem)
values (%(holder)s, tocsin.instant(), tocsin.instant() + make_interval(secs => %(known_s)s), %(problem)s)
on conflict (holder) do update set seen_until = excluded.seen_until, problem = excluded.problem
