-- See tocsin.raise_horizon; returns how many events were kept.
select tocsin.raise_horizon(%(until)s, %(per_rule)s)
