-- Finish a detach that was interrupted.
alter table tocsin.{parent} detach partition tocsin.{table} finalize
