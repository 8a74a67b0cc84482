-- Statistics, as autovacuum would have made them.
analyze tocsin.datapoint, tocsin.current_value
