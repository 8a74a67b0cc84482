-- Who leads since when.
select epoch, taken_at, holder from tocsin.log_head
