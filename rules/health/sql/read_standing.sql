-- The systems that have members of some owners (all if `owners` is null), with what they are in; of their members those of
-- the owners and those that are not ok, and how many others there are. One row. Index: system_member_owner.
with concerned as (
    select h.*
    from tocsin.system_health h
    where %(owners)s::text[] is null or exists (
        select from tocsin.system_member m where m.system = h.system and m.owner = any (%(owners)s))
),
member as (
    select m.*, %(owners)s::text[] is null or m.owner = any (%(owners)s) or m.condition <> 'ok' as is_told
    from tocsin.system_member m
    join concerned h on h.system = m.system
)
select (select coalesce(jsonb_agg(jsonb_build_array(h.system, h.health, h.reason, h.holds_from)), '[]') from concerned h),
       (select coalesce(jsonb_agg(jsonb_build_array(m.system, m.owner, m.key, m.type, m.required, m.covered, m.condition)), '[]')
        from member m where m.is_told),
       (select coalesce(jsonb_agg(jsonb_build_array(c.system, c.required, c.members)), '[]')
        from (select m.system, m.required, count(*) as members from member m where not m.is_told group by 1, 2) c)
