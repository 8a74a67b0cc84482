-- Links in messages that acknowledge one alarm. Only the instance can sign one.

create function tocsin.link_signature(alarm_id uuid, expires_s bigint, channel text) returns text
language sql stable security definer
set search_path = tocsin, pg_temp
as $$
    select left(encode(sha256(k.key || sha256(
        k.key || 'link'::bytea || uuid_send(link_signature.alarm_id) || int8send(link_signature.expires_s)
        || convert_to(link_signature.channel, 'UTF8'))), 'hex'), 40)
    from tocsin.instance_key k
$$;
comment on function tocsin.link_signature is
    'Signature of a link that acknowledges an alarm until an instant: 160 bits of a keyed hash.';
revoke all on function tocsin.link_signature from public;
