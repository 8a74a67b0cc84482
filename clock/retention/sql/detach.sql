-- Detach a partition. Outside of a transaction: waits for sessions that use it, as long as
-- lock_timeout allows, and blocks no other session.
alter table tocsin.{parent} detach partition tocsin.{table} concurrently
