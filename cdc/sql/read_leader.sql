-- The leading clock by the record log, and its epoch.
select epoch, holder, taken_at from tocsin.log_head
