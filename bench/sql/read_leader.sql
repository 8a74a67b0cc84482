-- The leader and since when it leads.
select epoch, taken_at, holder from tocsin.log_head
