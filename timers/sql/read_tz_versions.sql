-- The tz version of the clock, and the one that all pending ticks were computed with; null on a new
-- database.
select (select value from tocsin.setting where name = 'tz-version'),
       (select value from tocsin.setting where name = 'tz-ticks-version')
