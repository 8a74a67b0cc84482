-- How many series there are.
select count(*) from tocsin.current_value
