-- Sessions of people in a browser, and the one-time links that begin them. Only digests are stored, and no
-- role may read or write the tables: the API uses the functions.

create table tocsin.api_login (
    digest bytea primary key check (length(digest) = 32),
    name text not null check (length(name) between 1 and 128),
    grants text[] not null,
    created_by text not null,
    created_at timestamptz not null default tocsin.instant(),
    expires_at timestamptz not null,
    used_at timestamptz
);
comment on table tocsin.api_login is 'One-time login links. Written by tocsin.add_login, used once by tocsin.begin_session.';

create table tocsin.api_session (
    digest bytea primary key check (length(digest) = 32),
    name text not null check (length(name) between 1 and 128),
    grants text[] not null,
    source text not null check (source in ('link', 'oidc')),
    created_at timestamptz not null default tocsin.instant(),
    expires_at timestamptz not null,
    last_used_at timestamptz not null default tocsin.instant()
);
create index api_session_expires on tocsin.api_session (expires_at);
comment on table tocsin.api_session is
    'Sessions of people. Ended by tocsin.end_session, after twelve hours without use, or at expires_at.';
comment on column tocsin.api_session.name is 'Principal: the `who` of its changes.';
comment on column tocsin.api_session.last_used_at is 'Exact to a minute.';

create function tocsin.add_login(
    name text, digest bytea, grants text[], expires_at timestamptz, created_by text, via text
) returns void
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
begin
    perform tocsin.check_grants(add_login.grants);
    delete from tocsin.api_login l where l.expires_at < tocsin.instant() - interval '1 day';
    insert into tocsin.api_login (digest, name, grants, created_by, expires_at)
    values (add_login.digest, add_login.name, add_login.grants, tocsin.principal(add_login.created_by),
            add_login.expires_at);
    perform tocsin.write_audit(add_login.created_by, add_login.via, 'add', 'login-link', '', add_login.name, null,
        jsonb_build_object('grants', add_login.grants, 'expires_at', add_login.expires_at));
end
$$;
comment on function tocsin.add_login is 'Stores the digest of a one-time login link. The audit has its grants.';

create function tocsin.open_session(name text, digest bytea, grants text[], source text, expires_at timestamptz)
returns void
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
begin
    perform tocsin.check_grants(open_session.grants);
    delete from tocsin.api_session s
    where s.expires_at < tocsin.instant() or s.last_used_at < tocsin.instant() - interval '12 hours';
    insert into tocsin.api_session (digest, name, grants, source, expires_at)
    values (open_session.digest, open_session.name, open_session.grants, open_session.source,
            open_session.expires_at);
    perform tocsin.write_audit(open_session.name, 'api', 'begin', 'session', '', open_session.name, null,
        jsonb_build_object('grants', open_session.grants, 'source', open_session.source));
end
$$;
comment on function tocsin.open_session is 'Begins a session of a person that the API has authenticated.';

create function tocsin.begin_session(login_digest bytea, session_digest bytea, expires_at timestamptz)
returns text
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
declare
    login record;
begin
    update tocsin.api_login l set used_at = tocsin.instant()
    where l.digest = login_digest and l.used_at is null and l.expires_at > tocsin.instant()
    returning l.name, l.grants into login;
    if login.name is null then
        return null;
    end if;
    perform tocsin.open_session(login.name, session_digest, login.grants, 'link', begin_session.expires_at);
    return login.name;
end
$$;
comment on function tocsin.begin_session is
    'Uses a login link and begins the session of its principal. Null if the link is unknown, expired or used.';

create function tocsin.use_session(digest bytea)
returns table (name text, grants text[], expires_at timestamptz)
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
#variable_conflict use_column
begin
    return query
        select s.name, s.grants, s.expires_at
        from tocsin.api_session s
        where s.digest = use_session.digest and s.expires_at > tocsin.instant()
          and s.last_used_at > tocsin.instant() - interval '12 hours';
    update tocsin.api_session u set last_used_at = tocsin.instant()
    where u.digest = (
        select s.digest from tocsin.api_session s
        where s.digest = use_session.digest and s.expires_at > tocsin.instant()
          and s.last_used_at > tocsin.instant() - interval '12 hours'
          and s.last_used_at < tocsin.instant() - interval '1 minute'
        for update skip locked);
end
$$;
comment on function tocsin.use_session is 'The principal of a live session, by its digest; no row for any other.';

create function tocsin.end_session(digest bytea) returns boolean
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
declare
    ended text;
begin
    delete from tocsin.api_session s where s.digest = end_session.digest returning s.name into ended;
    if ended is null then
        return false;
    end if;
    perform tocsin.write_audit(ended, 'api', 'end', 'session', '', ended, null, null);
    return true;
end
$$;
comment on function tocsin.end_session is 'Ends a session. False if there is none.';

revoke all on all functions in schema tocsin from public;
