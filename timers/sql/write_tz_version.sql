-- Store the tz version, in the transaction that moved the ticks.
insert into tocsin.setting (name, value) values ('tz-version', %(version)s)
on conflict (name) do update set value = excluded.value
