-- Who leads as clock by the record log's own account, and since which epoch.
select epoch, holder, taken_at from tocsin.log_head
