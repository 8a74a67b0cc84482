-- Answers of the HTTP API to requests with an Idempotency-Key, stored in the transaction of their effect.
-- No role may read or write the table: the API uses the two functions.

create table tocsin.api_answer (
    caller text not null check (length(caller) between 1 and 300),
    key text not null check (length(key) between 1 and 200),
    digest bytea not null check (length(digest) = 32),
    status integer not null check (status between 200 and 299),
    headers jsonb not null,
    body bytea not null,
    answered_at timestamptz not null default tocsin.instant(),
    primary key (caller, key)
);
create index api_answer_age on tocsin.api_answer (answered_at);
comment on table tocsin.api_answer is 'Answers to requests with an Idempotency-Key, kept for a day. Written by tocsin.keep_answer.';
comment on column tocsin.api_answer.caller is 'Credential and principal of the request.';
comment on column tocsin.api_answer.digest is 'SHA-256 of method, path and body of the request.';

create function tocsin.find_answer(
    caller text, key text, digest bytea,
    out outcome text, out status integer, out headers jsonb, out body bytea
)
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
declare
    stored tocsin.api_answer;
begin
    -- Held until the transaction of the effect ends.
    if not pg_try_advisory_xact_lock(hashtextextended(caller || chr(31) || key, 27)) then
        outcome := 'under-way';
        return;
    end if;
    select * into stored from tocsin.api_answer a
    where a.caller = find_answer.caller and a.key = find_answer.key;
    if not found then
        outcome := 'new';
    elsif stored.digest <> find_answer.digest then
        outcome := 'other';
    else
        outcome := 'replayed';
        status := stored.status;
        headers := stored.headers;
        body := stored.body;
    end if;
end
$$;
comment on function tocsin.find_answer(text, text, bytea) is 'The answer under an Idempotency-Key: new, replayed, other (another request has the key) or under-way. Locks the key until the end of the transaction.';

create function tocsin.keep_answer(
    caller text, key text, digest bytea, status integer, headers jsonb, body bytea
) returns void
language sql volatile security definer
set search_path = tocsin, pg_temp
as $$
    delete from tocsin.api_answer a
    where (a.caller, a.key) in (
        select old.caller, old.key from tocsin.api_answer old
        where old.answered_at < tocsin.instant() - interval '1 day'
        order by old.answered_at
        limit 20
        for update skip locked);
    insert into tocsin.api_answer (caller, key, digest, status, headers, body)
    values (keep_answer.caller, keep_answer.key, keep_answer.digest, keep_answer.status, keep_answer.headers,
            keep_answer.body);
$$;
comment on function tocsin.keep_answer(text, text, bytea, integer, jsonb, bytea) is 'Stores an answer under its Idempotency-Key, in the transaction of its effect. Removes some that are older than a day.';
