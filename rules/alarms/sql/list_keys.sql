-- Every key that has a current value; many owners share one. Walks the table: when datapoint_types change, or somebody asks.
select distinct key from tocsin.current_value
