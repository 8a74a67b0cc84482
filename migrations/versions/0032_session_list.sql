-- Administrators list the sessions of people, and end one. A session has an id for that, which is no secret.

alter table tocsin.api_session add column id uuid not null default gen_random_uuid();
create unique index api_session_id on tocsin.api_session (id);
comment on column tocsin.api_session.id is 'Names the session in lists. The secret of the session is another one.';

create function tocsin.list_sessions(most integer)
returns table (
    id uuid, name text, grants text[], source text, created_at timestamptz, expires_at timestamptz,
    last_used_at timestamptz)
language sql stable security definer
set search_path = tocsin, pg_temp
as $$
    select s.id, s.name, s.grants, s.source, s.created_at, s.expires_at, s.last_used_at
    from tocsin.api_session s
    where s.expires_at > tocsin.instant() and s.last_used_at > tocsin.instant() - interval '12 hours'
    order by s.created_at desc, s.id
    limit most
$$;
comment on function tocsin.list_sessions is 'The live sessions without their digests, the newest first.';

create function tocsin.revoke_session(session_id uuid, revoked_by text, via text) returns boolean
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
declare
    ended text;
begin
    delete from tocsin.api_session s where s.id = session_id returning s.name into ended;
    if ended is null then
        return false;
    end if;
    perform tocsin.write_audit(revoked_by, via, 'revoke', 'session', '', ended,
        jsonb_build_object('id', session_id), null);
    return true;
end
$$;
comment on function tocsin.revoke_session is 'Ends the session of another person. False if there is none.';

revoke all on all functions in schema tocsin from public;
