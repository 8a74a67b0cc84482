-- The systems that have members of some owners (all if `owners` is null), with their health: the
-- members of these owners, and of the others how many have each condition, and the `shown` worst
-- that are not ok, in the order of rules/health/systems.py. One row: the owners bound how much is
-- read, however large the systems are. Index: system_member_owner, the key of system_member.
with concerned as (
    select h.*
    from tocsin.system_health h
    where %(owners)s::text[] is null or exists (
        select from tocsin.system_member m where m.system = h.system and m.owner = any (%(owners)s))
),
member as (
    select m.*, %(owners)s::text[] is null or m.owner = any (%(owners)s) as is_of_owners
    from tocsin.system_member m
    join concerned h on h.system = m.system
),
worst as (
    select m.*
    from concerned h
    cross join lateral (
        select w.*
        from tocsin.system_member w
        where w.system = h.system and w.condition <> 'ok' and w.owner <> all (%(owners)s::text[])
        order by array_position(%(worst)s::text[], w.condition), not w.required,
                 w.owner collate "C", w.key collate "C", w.type collate "C"
        limit %(shown)s
    ) m
)
select (select coalesce(jsonb_agg(jsonb_build_array(h.system, h.health, h.reason, h.holds_from)), '[]') from concerned h),
       (select coalesce(jsonb_agg(jsonb_build_array(m.system, m.owner, m.key, m.type, m.required, m.covered, m.holds, m.condition)), '[]')
        from member m where m.is_of_owners),
       (select coalesce(jsonb_agg(jsonb_build_array(c.system, c.condition, c.required, c.members)), '[]')
        from (select m.system, m.condition, m.required, count(*) as members from member m where not m.is_of_owners group by 1, 2, 3) c),
       (select coalesce(jsonb_agg(jsonb_build_array(m.system, m.owner, m.key, m.type, m.required, m.covered, m.holds, m.condition)), '[]')
        from worst m)
