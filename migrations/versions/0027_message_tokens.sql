-- The Nats-Msg-Id of a message that a step sends cannot be computed from the ids of the run. A producer
-- that knew it could send it first, and the stream would drop the message of the step as a duplicate.

create function tocsin.message_token(action_id uuid, step integer) returns text
language sql stable security definer
set search_path = tocsin, pg_temp
as $$
    select left(encode(sha256(k.key || sha256(
        k.key || 'message'::bytea || uuid_send(message_token.action_id) || int4send(message_token.step))), 'hex'), 32)
    from tocsin.instance_key k
$$;
comment on function tocsin.message_token is
    'Nats-Msg-Id of the message that a step sends: 128 bits of a keyed hash, the same for every attempt.';
revoke all on function tocsin.message_token from public;
