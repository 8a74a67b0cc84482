-- Delete audit rows by number. No other transaction changes them. The chain of the audit notes it.
select id from tocsin.prune_audit(%(key_2)s::bigint[]) as id
