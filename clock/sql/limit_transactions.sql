-- End a transaction of a clock that froze inside a pipeline, after ten times the timeout of an idle
-- one. Without a Sync the server waits in state `active`, where the idle timeout does not count.
-- Postgres 17 and newer; before that no batch is a pipeline.
select set_config(
    'transaction_timeout',
    (10 * 1000 * extract(epoch from current_setting('idle_in_transaction_session_timeout')::interval))::bigint::text,
    false)
where current_setting('server_version_num')::integer >= 170000
