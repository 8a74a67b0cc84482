-- The systems that have members of some owners (all if `owners` is null), with what they are in; the members of the owners, and of the
-- others how many are in what, and the `shown` worst that are not ok, in the order of rules/health/systems.py. One row: what is read is
-- bounded by the owners, however large or ill the systems are. Index: system_member_owner, system_member's key.
with concerned as (
    select h.*
    from tocsin.system_health h
    where %(owners)s::text[] is null or exists (
        select from tocsin.system_member m where m.system = h.system and m.owner = any (%(owners)s))
),
member as (
    select m.*, %(owners)s::text[] is null or m.owner = any (%(owners)s) as is_told
    from tocsin.system_member m
    join concerned h on h.system = m.system
),
worst as (
    select m.*
    from concerned h
    cross join lateral (
        select one.*
        from tocsin.system_member one
        where one.system = h.system and one.condition <> 'ok' and one.owner <> all (%(owners)s::text[])
        order by array_position(%(worst)s::text[], one.condition), not one.required,
                 one.owner collate "C", one.key collate "C", one.type collate "C"
        limit %(shown)s
    ) m
)
select (select coalesce(jsonb_agg(jsonb_build_array(h.system, h.health, h.reason, h.holds_from)), '[]') from concerned h),
       (select coalesce(jsonb_agg(jsonb_build_array(m.system, m.owner, m.key, m.type, m.required, m.covered, m.holds, m.condition)), '[]')
        from member m where m.is_told),
       (select coalesce(jsonb_agg(jsonb_build_array(c.system, c.condition, c.required, c.members)), '[]')
        from (select m.system, m.condition, m.required, count(*) as members from member m where not m.is_told group by 1, 2, 3) c),
       (select coalesce(jsonb_agg(jsonb_build_array(m.system, m.owner, m.key, m.type, m.required, m.covered, m.holds, m.condition)), '[]')
        from worst m)
