-- Partitions ahead of the head, made by the leader long before they are needed.
select tocsin.extend_log()
