-- Store the tz version of the clock. The caller holds lock_tz_version.
insert into tocsin.setting (name, value) values ('tz-version', %(version)s)
on conflict (name) do update set value = excluded.value
