-- Records why a worker cannot work; one row per process, however often it tries.
insert into tocsin.lane_worker (holder, since, seen_until, problem, remedy)
values (%(holder)s, tocsin.instant(), tocsin.instant() + make_interval(secs => %(expires_s)s), %(problem)s,
        %(remedy)s)
on conflict (holder) do update set seen_until = excluded.seen_until, problem = excluded.problem,
    remedy = excluded.remedy
