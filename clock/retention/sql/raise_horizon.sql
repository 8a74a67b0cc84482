-- See tocsin.raise_horizon; how many events were kept aside.
select tocsin.raise_horizon(%(until)s, %(per_rule)s)
