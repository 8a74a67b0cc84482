-- The lock of an Idempotency-Key is derived from the key of the instance, which no role may read: a stranger who
-- can connect, and knows caller and key, could otherwise hold it and keep the request from being made.

create or replace function tocsin.find_answer(
    caller text, key text, digest bytea,
    out outcome text, out status integer, out headers jsonb, out body bytea
)
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
declare
    stored tocsin.api_answer;
    secret text := (select encode(k.key, 'hex') from tocsin.instance_key k);
begin
    -- Held until the transaction of the effect ends.
    if not pg_try_advisory_xact_lock(hashtextextended(secret || chr(31) || caller || chr(31) || key, 27)) then
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
