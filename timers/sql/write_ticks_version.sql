-- Store the tz version with which all pending ticks have been computed.
insert into tocsin.setting (name, value) values ('tz-ticks-version', %(version)s)
on conflict (name) do update set value = excluded.value
