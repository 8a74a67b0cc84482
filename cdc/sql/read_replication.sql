-- Whether commits wait for a standby. Reads no table.
select current_setting('synchronous_standby_names') <> ''
