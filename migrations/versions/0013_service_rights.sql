-- Services that are not the owner of the schema make the partitions of datapoints as well as those of the log.
alter function tocsin.extend_datapoints(date, date) security definer set search_path = tocsin, pg_temp;
revoke all on function tocsin.extend_datapoints from public;
