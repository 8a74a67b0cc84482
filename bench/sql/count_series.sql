-- The number of series.
select count(*) from tocsin.current_value
