-- Locks that a stranger cannot take, a guard that no setting opens, and a time that no session sets.

-- Any role that can connect can take an advisory lock, and pg_locks shows the keys of all of them. A
-- table is locked only by roles with rights on it: these tables have no grants, and the functions below
-- lock them as the owner. They have no rows, so that vacuum has nothing to do with them.
create table tocsin.lock_log ();
create table tocsin.lock_partitions ();
create table tocsin.lock_rules ();
create table tocsin.lock_health ();
create table tocsin.lock_tz_version ();
create table tocsin.lock_prune ();
revoke all on tocsin.lock_log, tocsin.lock_partitions, tocsin.lock_rules, tocsin.lock_health,
    tocsin.lock_tz_version, tocsin.lock_prune from public;
comment on table tocsin.lock_log is 'Lock of the record log, without rows. Taken by tocsin.append until the commit.';
comment on table tocsin.lock_partitions is
    'Lock for creating partitions, without rows. Taken by tocsin.extend_log and tocsin.extend_datapoints.';
comment on table tocsin.lock_rules is 'Lock of the rule set, without rows: one apply at a time. See tocsin.lock_rules().';
comment on table tocsin.lock_health is 'Lock for writing health, without rows. See tocsin.lock_health().';
comment on table tocsin.lock_tz_version is
    'Lock of the tz version, without rows: shared by edits of schedules, exclusive for a clock that stores '
    'a new version.';
comment on table tocsin.lock_prune is 'Lock for starting a run of retention, without rows. See tocsin.claim_prune().';

create function tocsin.lock_log() returns void
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
begin
    lock table tocsin.lock_log in share row exclusive mode;
end
$$;
comment on function tocsin.lock_log is
    'Locks the record log against every other append until the transaction ends. Called by an apply.';

create function tocsin.try_share_log() returns boolean
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
begin
    lock table tocsin.lock_log in share mode nowait;
    return true;
exception
    when lock_not_available then
        return false;
end
$$;
comment on function tocsin.try_share_log is
    'Prevents appends until the transaction ends. False if a session is about to commit one.';

create function tocsin.lock_rules() returns void
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
begin
    lock table tocsin.lock_rules in share row exclusive mode;
end
$$;
comment on function tocsin.lock_rules is 'Lets one apply at a time change the rule set, until its transaction ends.';

create function tocsin.lock_health() returns void
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
begin
    lock table tocsin.lock_health in share row exclusive mode;
end
$$;
comment on function tocsin.lock_health is
    'Lock for writing health until the transaction ends. An apply waits for the worker that holds it.';

create function tocsin.try_lock_health() returns boolean
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
begin
    lock table tocsin.lock_health in share row exclusive mode nowait;
    return true;
exception
    when lock_not_available then
        return false;
end
$$;
comment on function tocsin.try_lock_health is
    'Lock for writing health, if it is free. False if another worker or an apply holds it.';

create function tocsin.lock_tz_version() returns void
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
begin
    lock table tocsin.lock_tz_version in share row exclusive mode;
end
$$;
comment on function tocsin.lock_tz_version is
    'Waits until no open edit of a schedule has read the stored tz version, and blocks later edits until the '
    'transaction ends. Called by the clock.';

create or replace function tocsin.share_tz_version() returns text
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
begin
    lock table tocsin.lock_tz_version in share mode;
    -- A new statement, so that it sees a version that was stored while this one waited.
    return (select s.value from tocsin.setting s where s.name = 'tz-version');
end
$$;

-- A run of retention has many transactions, so its lock belongs to the session. Only advisory locks do,
-- so each run has one with a random key. A session that waits for that key to block the next run has
-- another pid.
alter table tocsin.prune_report add column claim_key bigint, add column claim_pid integer;
comment on column tocsin.prune_report.claim_key is 'Key of the advisory lock that the run holds.';
comment on column tocsin.prune_report.claim_pid is 'Server process of the run.';

create function tocsin.is_pruning() returns boolean
language sql stable security definer
set search_path = tocsin, pg_temp
as $$
    select exists (
        select from tocsin.prune_report r
        join pg_locks l on l.pid = r.claim_pid
            and (l.classid::bigint << 32) | l.objid::bigint = r.claim_key
        where l.locktype = 'advisory' and l.granted and l.objsubid = 1
          and l.database = (select d.oid from pg_database d where d.datname = current_database()))
$$;
comment on function tocsin.is_pruning is 'Whether a run of retention is in progress.';

create function tocsin.claim_prune() returns boolean
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
declare
    key bigint := ('x' || left(replace(gen_random_uuid()::text, '-', ''), 12))::bit(48)::bigint;
begin
    lock table tocsin.lock_prune in share row exclusive mode;
    if tocsin.is_pruning() or not pg_try_advisory_lock(key) then
        return false;
    end if;
    update tocsin.prune_report set claim_key = key, claim_pid = pg_backend_pid();
    return true;
end
$$;
comment on function tocsin.claim_prune is
    'Allows the session to run retention until it ends or calls tocsin.release_prune. False if another '
    'session does.';

create function tocsin.release_prune() returns boolean
language sql volatile security definer
set search_path = tocsin, pg_temp
as $$
    select pg_advisory_unlock(r.claim_key) from tocsin.prune_report r where r.claim_pid = pg_backend_pid()
$$;
comment on function tocsin.release_prune is 'Ends the claim of tocsin.claim_prune, so that another run can begin.';

-- The functions that lock as the owner keep their bodies: only the statement of the lock is replaced.
do $$
declare
    change record;
    definition text;
begin
    for change in
        select f.name, f.lock, f.lock_table
        from (values
            ('append', 'tocsin.log', 'lock_log'),
            ('raise_epoch', 'tocsin.log', 'lock_log'),
            ('record_gap', 'tocsin.log', 'lock_log'),
            ('adopt', 'tocsin.log', 'lock_log'),
            ('adopt_inside', 'tocsin.log', 'lock_log'),
            ('extend_log', 'tocsin.extend_log', 'lock_partitions'),
            ('extend_datapoints', 'tocsin.extend_datapoints', 'lock_partitions')
        ) as f (name, lock, lock_table)
    loop
        definition := pg_get_functiondef(('tocsin.' || change.name)::regproc);
        execute replace(
            definition,
            format('perform pg_advisory_xact_lock(hashtext(%L));', change.lock),
            format('lock table tocsin.%I in share row exclusive mode;', change.lock_table));
    end loop;
end
$$;

-- The name of the calling function decides, not a setting, which any session can change. The guard
-- protects the log from mistakes of its owner, who could also drop it. Every other role is kept out by
-- missing grants and by row security.
create or replace function tocsin.refuse_direct_write() returns trigger
language plpgsql
as $$
declare
    stack text;
begin
    get diagnostics stack = pg_context;
    if exists (
            select from regexp_matches(stack, '\nPL/pgSQL function (?:tocsin\.)?([a-z_]+)\(', 'g') as caller (names)
            join pg_proc p on p.proname = caller.names[1]
            where p.pronamespace = 'tocsin'::regnamespace and p.prosecdef)
    then
        return null;
    end if;
    raise exception 'tocsin.% is written by functions of tocsin alone: append with tocsin.append', tg_table_name
        using errcode = 'insufficient_privilege';
end
$$;
comment on function tocsin.refuse_direct_write is
    'Trigger function of the guarded tables: rejects every statement but those of the SECURITY DEFINER '
    'functions of Tocsin, which it recognises in the call stack. Not called for a superuser.';

-- The WHEN clause spares a service the call, which would cost an append of one record a third of its
-- time: tocsin.append runs as the owner while the session belongs to another role that has not used SET
-- ROLE.
create or replace function tocsin.guard(log_table text) returns void
language plpgsql
as $$
begin
    execute format('alter table tocsin.%I enable row level security', log_table);
    execute format('create policy readable on tocsin.%I for select using (true)', log_table);
    execute format(
        'create trigger guard before insert or update or delete or truncate on tocsin.%I for each statement '
        'when (current_setting(''is_superuser'') = ''off'' '
        '      and (current_user = session_user or current_setting(''role'') <> ''none'')) '
        'execute function tocsin.refuse_direct_write()',
        log_table);
end
$$;

do $$
declare
    guarded regclass;
begin
    for guarded in
        select t.tgrelid::regclass from pg_trigger t
        where t.tgname = 'guard_insert' and t.tgfoid = 'tocsin.refuse_direct_write'::regproc
    loop
        execute format('drop trigger guard_insert on %s', guarded);
        execute format('drop trigger guard on %s', guarded);
        execute format('drop policy readable on %s', guarded);
        perform tocsin.guard((select c.relname from pg_class c where c.oid = guarded));
    end loop;
end
$$;

-- Tests replace this function by one that follows a setting (migrations/sql/set_time_by_session.sql).
create or replace function tocsin.instant() returns timestamptz
language sql volatile parallel safe
as $$
    select clock_timestamp()
$$;
comment on function tocsin.instant is
    'Current time of this database: the only SQL function that reads a clock. In the databases of tests '
    'it follows the setting tocsin.now of the session; `tocsin doctor` is red if it does.';

-- Functions are executable by everyone unless that is revoked. Who may execute which is decided by
-- `tocsin roles`.
revoke all on all functions in schema tocsin from public;
