-- Outside of a transaction: waits for those who use the partition, for as long as lock_timeout allows, and holds up nobody.
alter table tocsin.{parent} detach partition tocsin.{table} concurrently
