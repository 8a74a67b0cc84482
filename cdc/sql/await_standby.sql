-- A commit without a table, which waits for the synchronous standby like any other. The prefix keeps
-- it apart from messages of others for readers of the WAL.
select pg_logical_emit_message(true, 'tocsin', '')
