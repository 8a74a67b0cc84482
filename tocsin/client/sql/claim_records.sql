-- Claim records for this transaction, in the order of their sequence; returns those that were not
-- handled before. Locks their keys: a second delivery waits here until the first one ends, and gets
-- no row if that one committed. A row that tidy_inbox deleted meanwhile is found by reading the
-- inbox in a new statement.
with claimed as (
    insert into tocsin_inbox_ahead (stream, consumer, seq)
    select %(stream)s, %(consumer)s, asked.seq
    from unnest(%(seqs)s::bigint[]) as asked (seq)
    on conflict do nothing
    returning seq
)
select coalesce(array_agg(seq), '{}') from claimed
