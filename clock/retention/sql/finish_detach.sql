-- A detach that was begun and interrupted.
alter table tocsin.{parent} detach partition tocsin.{table} finalize
