-- Time, settings and the audit: what every other part of the schema builds on.

create schema tocsin;
comment on schema tocsin is
    'Tables and functions of Tocsin. Created by `tocsin migrate`, written by its services.';

-- The runner creates this table before it applies the first version.
comment on table public.tocsin_migration is
    'Schema versions that were applied to this database. Written by `tocsin migrate`.';
comment on column public.tocsin_migration.checksum is
    'SHA-256 of the version file. Services refuse a database whose checksums differ from their '
    'own files.';

create function tocsin.instant() returns timestamptz
language sql volatile parallel safe
as $$
    select coalesce(nullif(current_setting('tocsin.now', true), '')::timestamptz, clock_timestamp())
$$;
comment on function tocsin.instant is
    'Current time of this database: the only SQL function that reads a clock. A test moves it '
    'with the session setting tocsin.now.';

create function tocsin.token(value text) returns text
language sql immutable strict parallel safe
as $$
    select case
        when value = '' then '_'
        when value = '_' then '%5F'
        when value collate "C" ~ '^[A-Za-z0-9_-]+$' then value
        else (
            select string_agg(
                case when chr(b.byte) collate "C" ~ '^[A-Za-z0-9_-]$' and b.byte < 128 then chr(b.byte)
                     else '%' || upper(lpad(to_hex(b.byte), 2, '0')) end,
                '' order by b.position)
            from (
                select p.position, get_byte(u.bytes, p.position) as byte
                from (select convert_to(value, 'UTF8') as bytes) u,
                     generate_series(0, octet_length(u.bytes) - 1) as p (position)
            ) b
        )
    end
$$;
comment on function tocsin.token is
    'Text as one token of a NATS subject, the same as in Python: bytes outside [A-Za-z0-9_-] '
    'become %XX, an empty text becomes _.';

create function tocsin.is_readable(document jsonb) returns boolean
-- Not `language sql`: Postgres would plan it again for each statement that checks a row (0.4 ms).
language plpgsql immutable parallel safe
as $$
begin
    if jsonb_typeof(document) is distinct from 'object' then
        return false;
    end if;
    return octet_length(document::text) <= 4300 or not exists (
        select from jsonb_path_query(document, 'strict $.**') as part
        where jsonb_typeof(part) = 'number' and length(part::text) > 4300);
end
$$;
comment on function tocsin.is_readable is
    'Whether a JSON document is an object that every service can read. Python rejects integers of '
    'more than 4300 digits.';

create table tocsin.setting (
    name text primary key,
    value text not null
);
comment on table tocsin.setting is
    'Facts about this database that outlive every process. Written by the clock: tz-version is '
    'the version of its time zone data, and tz-ticks-version is the version that all pending '
    'schedule ticks were computed with.';

create table tocsin.audit (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    who text not null,
    via text not null,
    verb text not null,
    kind text not null,
    owner text not null default '',
    name text not null,
    old jsonb,
    new jsonb
);
create index audit_subject on tocsin.audit (kind, name, id);
-- Retention reads the oldest rows first.
create index audit_at on tocsin.audit (at, id);
comment on table tocsin.audit is
    'Changes that operators and services made, one row each, in the transaction of the change. '
    'Read with `tocsin audit`.';
comment on column tocsin.audit.who is 'Operator or database role that made the change.';
comment on column tocsin.audit.via is 'Interface that was used, such as cli, up or sql.';
comment on column tocsin.audit.verb is 'Kind of change, such as add, cancel or acknowledge.';
comment on column tocsin.audit.kind is 'Kind of object that changed, such as schedule or alarm.';
comment on column tocsin.audit.old is 'Object before the change; null if there was none.';
comment on column tocsin.audit.new is 'Object after the change; null if it is gone.';
