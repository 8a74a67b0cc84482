-- Every key that has a current value; owners share keys. Scans the table, when datapoint_types
-- change or an operator asks.
select distinct key from tocsin.current_value
