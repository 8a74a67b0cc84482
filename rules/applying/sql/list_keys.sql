-- Every key that has a current value. Walks the table: only when datapoint_types change.
select distinct key from tocsin.current_value
