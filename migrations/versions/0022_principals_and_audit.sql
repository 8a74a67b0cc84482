-- Principals: who acts is the role of the session, never a parameter. Owners that a role may use are
-- granted. The audit is written by functions alone, with the time of the server, and chained.

create table tocsin.owner_grant (
    grantee text not null check (length(grantee) between 1 and 128),
    pattern text not null check (length(pattern) <= 129 and position('*' in left(pattern, -1)) = 0),
    granted_by text not null default session_user,
    granted_at timestamptz not null default tocsin.instant(),
    primary key (grantee, pattern)
);
comment on table tocsin.owner_grant is
    'Owners that a role may use: services in tocsin.schedule_once and the like, readers in the rows that '
    'they see. Written with `tocsin roles grant`.';
comment on column tocsin.owner_grant.grantee is 'A role, which its members share, or a principal of the API.';
comment on column tocsin.owner_grant.pattern is 'An owner, or the beginning of owners followed by *.';

create function tocsin.is_member(role_name text) returns boolean
language sql stable parallel safe
as $$
    select exists (
        select from pg_roles r where r.rolname = role_name and pg_has_role(session_user, r.oid, 'member'))
$$;
comment on function tocsin.is_member is
    'Whether the session belongs to a role or one of its members; false if there is no such role.';

create function tocsin.is_trusted() returns boolean
language sql stable
as $$
    select current_setting('is_superuser') = 'on'
        or tocsin.is_member('tocsin_api')
        or (select pg_has_role(session_user, n.nspowner, 'member') from pg_namespace n where n.nspname = 'tocsin')
$$;
comment on function tocsin.is_trusted is
    'Whether the session may name the principal that it acts for: the API, which has authenticated it, and '
    'the owner of the schema, who could write anything.';

create function tocsin.principal(claimed text) returns text
language sql stable
as $$
    select case when tocsin.is_trusted() then coalesce(nullif(claimed, ''), session_user) else session_user end
$$;
comment on function tocsin.principal is
    'Who acts: the role of the session. A name that the caller claims counts only from a trusted session.';

create function tocsin.own_patterns() returns text[]
language sql stable security definer
set search_path = tocsin, pg_temp
as $$
    select case when tocsin.is_trusted() then array['*'] else coalesce(array_agg(g.pattern), '{}') end
    from tocsin.owner_grant g
    where tocsin.is_member(g.grantee)
$$;
comment on function tocsin.own_patterns is 'Patterns of the owners that the session may use.';

create function tocsin.owner_matches(owner text, patterns text[]) returns boolean
language sql immutable parallel safe
as $$
    select exists (
        select from unnest(patterns) as p (pattern)
        where case when right(p.pattern, 1) = '*' then starts_with(owner, left(p.pattern, -1)) else owner = p.pattern end)
$$;
comment on function tocsin.owner_matches is
    'Whether an owner is named by a pattern: an owner, or the beginning of one followed by *. The same as '
    'tocsin/policy/decision.py.';

create function tocsin.require_owner(owner text) returns void
language plpgsql stable
as $$
begin
    -- Schedules of Tocsin itself have owners that begin with tocsin: and belong to no service.
    if not tocsin.owner_matches(coalesce(require_owner.owner, ''), tocsin.own_patterns())
        or (starts_with(require_owner.owner, 'tocsin:') and not tocsin.is_trusted())
    then
        raise exception 'role % has no grant for owner %: an operator can give one with `tocsin roles grant`',
            quote_literal(session_user), quote_literal(coalesce(require_owner.owner, '')) using errcode = 'TS006';
    end if;
end
$$;
comment on function tocsin.require_owner is 'Raises TS006 unless the session may use the owner.';

-- The audit. Rows are chained after their commit (tocsin.seal_audit), because a chain that is written in
-- the transaction of the change would let one open transaction stop all others.
alter table tocsin.audit add column claimed text;
comment on column tocsin.audit.at is 'When the change was made, by the clock of the database.';
comment on column tocsin.audit.who is 'Principal: the role of the session, or what a trusted session named.';
comment on column tocsin.audit.claimed is 'Name that the caller gave, if it differs from who.';

create table tocsin.audit_seal (
    position bigint primary key,
    audit_id bigint not null unique,
    digest bytea not null,
    previous bytea not null,
    hash bytea not null,
    sealed_at timestamptz not null,
    pruned_at timestamptz
);
create index audit_seal_pruned on tocsin.audit_seal (position) where pruned_at is null;
comment on table tocsin.audit_seal is
    'Hash chain over tocsin.audit. Written by tocsin.seal_audit, which the clock calls, and checked by '
    '`tocsin audit verify`.';
comment on column tocsin.audit_seal.digest is 'SHA-256 of the row of the audit.';
comment on column tocsin.audit_seal.hash is 'SHA-256 of the hash before and the digest.';
comment on column tocsin.audit_seal.pruned_at is 'When retention removed the row of the audit.';

create table tocsin.lock_audit ();
comment on table tocsin.lock_audit is 'Lock for chaining the audit, without rows. See tocsin.seal_audit().';

create function tocsin.stamp_audit() returns trigger
language plpgsql
as $$
declare
    claimed text := new.who;
begin
    new.at := tocsin.instant();
    new.who := tocsin.principal(claimed);
    new.claimed := nullif(claimed, new.who);
    return new;
end
$$;
comment on function tocsin.stamp_audit is
    'Trigger function of the audit: time and principal are those of the server, whatever the caller gave.';
create trigger stamp before insert on tocsin.audit for each row execute function tocsin.stamp_audit();

create function tocsin.write_audit(
    who text, via text, verb text, kind text, owner text, name text, old jsonb, new jsonb
) returns void
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
begin
    insert into tocsin.audit (at, who, via, verb, kind, owner, name, old, new)
    values (tocsin.instant(), write_audit.who, write_audit.via, write_audit.verb, write_audit.kind,
            coalesce(write_audit.owner, ''), write_audit.name, write_audit.old, write_audit.new);
end
$$;
comment on function tocsin.write_audit is
    'Records a change, in the transaction of the change. The only way to write the audit. Its time is that '
    'of the server, and its principal that of the session; `who` is stored as a claim.';

create function tocsin.audit_digest(a tocsin.audit) returns bytea
language sql stable
as $$
    select sha256(convert_to(jsonb_build_array(
        a.id, extract(epoch from a.at), a.who, a.claimed, a.via, a.verb, a.kind, a.owner, a.name, a.old, a.new)::text,
        'UTF8'))
$$;
comment on function tocsin.audit_digest is
    'Digest of a row of the audit. tocsin/core/sql/list_seals.sql computes the same without this function.';

create function tocsin.seal_audit(most integer default 10000) returns bigint
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
declare
    entry record;
    last_position bigint;
    last_hash bytea;
    sealed bigint := 0;
begin
    lock table tocsin.lock_audit in share row exclusive mode;
    select s.position, s.hash into last_position, last_hash
    from tocsin.audit_seal s order by s.position desc limit 1;
    last_position := coalesce(last_position, 0);
    last_hash := coalesce(last_hash, '\x');
    for entry in
        select a.id, tocsin.audit_digest(a) as digest
        from tocsin.audit a
        where not exists (select from tocsin.audit_seal s where s.audit_id = a.id)
        order by a.id
        limit most
    loop
        last_position := last_position + 1;
        insert into tocsin.audit_seal (position, audit_id, digest, previous, hash, sealed_at)
        values (last_position, entry.id, entry.digest, last_hash, sha256(last_hash || entry.digest), tocsin.instant())
        returning hash into last_hash;
        sealed := sealed + 1;
    end loop;
    return sealed;
end
$$;
comment on function tocsin.seal_audit is
    'Appends the committed rows of the audit that are not chained yet to the chain. Returns how many.';

create function tocsin.prune_audit(ids bigint[]) returns setof bigint
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
begin
    perform tocsin.seal_audit();
    update tocsin.audit_seal s set pruned_at = tocsin.instant() where s.audit_id = any (ids);
    return query
        delete from tocsin.audit a
        where a.id = any (ids) and exists (select from tocsin.audit_seal s where s.audit_id = a.id)
        returning a.id;
    -- The oldest seals are needed no longer: the first that stays has the hash before it.
    delete from tocsin.audit_seal s
    where s.position < (
        select coalesce(min(k.position), (select max(l.position) from tocsin.audit_seal l))
        from tocsin.audit_seal k where k.pruned_at is null);
end
$$;
comment on function tocsin.prune_audit is
    'Removes rows of the audit, and notes in the chain that retention did it. Returns the ids of the rows.';

select tocsin.guard('audit');
select tocsin.guard('audit_seal');
select tocsin.guard('event_kept');

-- Functions for services run as the owner, so that a service needs no right on a table. They check the
-- owner that the caller names, and the principal is that of the session.
do $$
declare
    change record;
    definition text;
    opened text;
begin
    for change in
        select f.name, f.opening
        from (values
            ('schedule_once', 'perform tocsin.require_owner(schedule_once.owner);
    schedule_once.created_by := tocsin.principal(schedule_once.created_by);'),
            ('schedule_recurring', 'perform tocsin.require_owner(schedule_recurring.owner);
    schedule_recurring.created_by := tocsin.principal(schedule_recurring.created_by);'),
            ('schedule_move', 'perform tocsin.require_owner(schedule_move.owner);'),
            ('schedule_cancel', 'perform tocsin.require_owner(schedule_cancel.owner);')
        ) as f (name, opening)
    loop
        definition := pg_get_functiondef(('tocsin.' || change.name)::regproc);
        opened := regexp_replace(definition, e'\nbegin\n', e'\nbegin\n    ' || change.opening || e'\n');
        if opened = definition then
            raise exception 'function tocsin.% has no place for the check of its owner', change.name;
        end if;
        execute opened;
        execute format('alter function tocsin.%I security definer set search_path = tocsin, pg_temp', change.name);
    end loop;
end
$$;
do $$
declare
    definition text := pg_get_functiondef('tocsin.schedule_cancel_all'::regproc);
    condition text := 'where s.status in (''active'', ''paused'')';
begin
    execute replace(definition, condition,
                    condition || e'\n          and tocsin.owner_matches(s.owner, tocsin.own_patterns())');
end
$$;
alter function tocsin.schedule_cancel_all security definer set search_path = tocsin, pg_temp;
alter function tocsin.schedule_cancel_id security definer set search_path = tocsin, pg_temp;
alter function tocsin.check_schedule security definer set search_path = tocsin, pg_temp;

-- Retention as a role that owns nothing. The lock of the parent is waited for briefly, because appends
-- queue behind it.
create function tocsin.drop_partition(partition_name text) returns boolean
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
set lock_timeout = '100ms'
as $$
declare
    parent text;
    start text := substring(partition_name from '_([0-9]+)$');
    is_old boolean;
begin
    select p.relname into parent
    from pg_class c
    join pg_inherits i on i.inhrelid = c.oid
    join pg_class p on p.oid = i.inhparent
    where c.relnamespace = 'tocsin'::regnamespace and c.relname = partition_name;
    if parent is null then
        return false;
    end if;
    if parent = 'datapoint' then
        is_old := to_date(start, 'YYYYMMDD') < (tocsin.instant() - interval '1 day')::date;
    else
        select start::bigint + h.partition_size <= h.horizon into is_old from tocsin.log_head h;
    end if;
    if not is_old then
        raise exception 'partition % has records that are kept: raise the horizon first', partition_name
            using errcode = 'TS005';
    end if;
    execute format('alter table tocsin.%I detach partition tocsin.%I', parent, partition_name);
    execute format('drop table tocsin.%I', partition_name);
    return true;
end
$$;
comment on function tocsin.drop_partition is
    'Drops a partition of the log below the horizon, or of datapoints before yesterday. For a clock that '
    'does not own the schema; the owner detaches concurrently.';

create function tocsin.protect_rows(table_name text) returns void
language plpgsql volatile
as $$
begin
    execute format('alter table tocsin.%I enable row level security', table_name);
    if not exists (select from pg_policies p
                   where p.schemaname = 'tocsin' and p.tablename = table_name and p.policyname in ('readable', 'granted'))
    then
        execute format('create policy granted on tocsin.%I using (true) with check (true)', table_name);
    end if;
    execute format('drop policy if exists of_owner on tocsin.%I', table_name);
    execute format('create policy of_owner on tocsin.%I as restrictive for select to tocsin_reader '
                   'using (tocsin.owner_matches(owner, (select tocsin.own_patterns())))', table_name);
end
$$;
comment on function tocsin.protect_rows is
    'Lets tocsin_reader and its members see only rows whose owner is granted to them. Other roles see what '
    'they may select.';

revoke all on all functions in schema tocsin from public;
