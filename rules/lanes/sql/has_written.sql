-- Whether this transaction has written or locked a row.
select pg_current_xact_id_if_assigned() is not null
