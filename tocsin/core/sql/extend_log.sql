-- Create partitions of the log ahead of its head, long before they are needed.
select tocsin.extend_log()
