-- The tz version that the pending ticks were computed with; no row on a new database.
select value from tocsin.setting where name = 'tz-version'
