-- See take_turn.
select pg_advisory_unlock(hashtext('tocsin.prune'))
