-- The server process of this statement, and the lock timeout of its session in ms. Reads no table.
select pg_backend_pid(), (extract(epoch from current_setting('lock_timeout')::interval) * 1000)::integer
