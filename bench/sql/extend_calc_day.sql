-- Partitions of the datapoints for the day of the benchmark.
select tocsin.extend_datapoints((%(begin)s::timestamptz - interval '1 day')::date, (%(begin)s::timestamptz + interval '1 day')::date)
