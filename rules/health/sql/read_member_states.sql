-- The decided states of the series and alarms of some owners; of all if `owners` is null. One row.
select (select coalesce(jsonb_agg(jsonb_build_array(s.owner, s.key, s.stale_since)), '[]')
        from tocsin.member_series s
        where %(owners)s::text[] is null or s.owner = any (%(owners)s)),
       (select coalesce(jsonb_agg(jsonb_build_array(a.owner, a.rule, a.instance, a.severity, a.since, a.keys)), '[]')
        from tocsin.member_alarm a
        where %(owners)s::text[] is null or a.owner = any (%(owners)s))
