-- Tokens of the HTTP API. Only a digest is stored, and no role may read or write the tables: the API
-- authenticates with tocsin.use_token, and administrators change tokens with the other functions.

create table tocsin.api_token (
    id uuid primary key default gen_random_uuid(),
    name text not null check (length(name) between 1 and 128),
    digest bytea not null unique check (length(digest) = 32),
    hint text not null check (length(hint) <= 40),
    grants text[] not null check (cardinality(grants) between 1 and 50),
    created_by text not null,
    created_at timestamptz not null default tocsin.instant(),
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz,
    revoked_by text
);
create unique index api_token_name on tocsin.api_token (name) where revoked_at is null;
comment on table tocsin.api_token is 'Tokens of programs for the HTTP API. Written by tocsin.add_token and tocsin.revoke_token.';
comment on column tocsin.api_token.name is 'Principal that acts with the token: the `who` of its changes.';
comment on column tocsin.api_token.digest is 'SHA-256 of the token, which has 160 random bits.';
comment on column tocsin.api_token.hint is 'Beginning of the token, to recognise it.';
comment on column tocsin.api_token.grants is 'Roles by owners, each as role:pattern.';
comment on column tocsin.api_token.last_used_at is 'Exact to a minute.';

create function tocsin.check_grants(grants text[]) returns void
language plpgsql immutable
as $$
declare
    entry text;
begin
    if coalesce(cardinality(grants), 0) not between 1 and 50 then
        raise exception 'a principal needs 1 to 50 grants' using errcode = 'TS002';
    end if;
    foreach entry in array grants loop
        if entry !~ '^(viewer|responder|author|approver|operator|admin):[^*]{0,128}[*]?$' or entry ~ ':$' then
            raise exception '% is not a grant: write role:owner or role:beginning*', quote_literal(entry)
                using errcode = 'TS002';
        end if;
    end loop;
end
$$;
comment on function tocsin.check_grants is 'Raises TS002 unless each text is a role, a colon and a pattern of owners.';

create function tocsin.add_token(
    name text, digest bytea, hint text, grants text[], expires_at timestamptz, created_by text, via text
) returns uuid
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
#variable_conflict use_column
declare
    token_id uuid;
begin
    perform tocsin.check_grants(add_token.grants);
    if add_token.expires_at <= tocsin.instant() then
        raise exception 'the token would expire before it is used' using errcode = 'TS002';
    end if;
    insert into tocsin.api_token (name, digest, hint, grants, expires_at, created_by)
    values (add_token.name, add_token.digest, add_token.hint, add_token.grants, add_token.expires_at,
            tocsin.principal(add_token.created_by))
    on conflict (name) where revoked_at is null do nothing
    returning id into token_id;
    if token_id is null then
        raise exception 'there is a token % already: revoke it, or choose another name', quote_literal(add_token.name)
            using errcode = 'TS002';
    end if;
    perform tocsin.write_audit(add_token.created_by, add_token.via, 'add', 'token', '', add_token.name, null,
        jsonb_build_object('id', token_id, 'grants', add_token.grants, 'expires_at', add_token.expires_at));
    return token_id;
end
$$;
comment on function tocsin.add_token is 'Stores the digest of a new token. The audit has its grants.';

create function tocsin.revoke_token(token_id uuid, revoked_by text, via text) returns boolean
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
declare
    token_name text;
begin
    update tocsin.api_token t
    set revoked_at = tocsin.instant(), revoked_by = tocsin.principal(revoke_token.revoked_by)
    where t.id = token_id and t.revoked_at is null
    returning t.name into token_name;
    if token_name is null then
        return false;
    end if;
    perform tocsin.write_audit(revoke_token.revoked_by, revoke_token.via, 'revoke', 'token', '', token_name,
        jsonb_build_object('id', token_id), null);
    return true;
end
$$;
comment on function tocsin.revoke_token is 'Ends a token. False if it is unknown or was ended before.';

create function tocsin.use_token(digest bytea)
returns table (id uuid, name text, grants text[], expires_at timestamptz)
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
#variable_conflict use_column
begin
    return query
        select t.id, t.name, t.grants, t.expires_at
        from tocsin.api_token t
        where t.digest = use_token.digest and t.revoked_at is null
          and (t.expires_at is null or t.expires_at > tocsin.instant());
    -- Skipped while another request writes the same: authentication waits for no lock.
    update tocsin.api_token u set last_used_at = tocsin.instant()
    where u.id = (
        select t.id from tocsin.api_token t
        where t.digest = use_token.digest and t.revoked_at is null
          and (t.last_used_at is null or t.last_used_at < tocsin.instant() - interval '1 minute')
        for update skip locked);
end
$$;
comment on function tocsin.use_token is
    'The principal of a valid token, by its digest; no row for any other. Notes the use once a minute.';

create function tocsin.list_tokens()
returns table (
    id uuid, name text, hint text, grants text[], created_by text, created_at timestamptz,
    expires_at timestamptz, last_used_at timestamptz, revoked_at timestamptz, revoked_by text)
language sql stable security definer
set search_path = tocsin, pg_temp
as $$
    select t.id, t.name, t.hint, t.grants, t.created_by, t.created_at, t.expires_at, t.last_used_at,
           t.revoked_at, t.revoked_by
    from tocsin.api_token t
    order by t.created_at, t.id
$$;
comment on function tocsin.list_tokens is 'All tokens without their digests, the oldest first.';

revoke all on all functions in schema tocsin from public;
