-- The chain of the audit after a position, with the digest of the row as it is now; null if the row is
-- gone. The digest of an erased row is that without its contents. Built-in functions only: a replaced function of the schema must not hide a change.
select s.position, s.audit_id, s.digest, s.previous, s.hash, s.pruned_at is not null,
       case when a.id is not null then sha256(convert_to(jsonb_build_array(
           a.id, extract(epoch from a.at), a.who, a.claimed, a.via, a.verb, a.kind, a.owner, a.name, a.old, a.new)::text,
           'UTF8')) end,
       s.erased_digest
from tocsin.audit_seal s
left join tocsin.audit a on a.id = s.audit_id
where s.position > %(after)s
order by s.position
limit %(limit)s
