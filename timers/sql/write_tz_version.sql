-- In the transaction that computed the ticks again.
insert into tocsin.setting (name, value) values ('tz-version', %(version)s)
on conflict (name) do update set value = excluded.value
