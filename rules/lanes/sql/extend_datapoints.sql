-- Creates partitions of `datapoint` for days of arrival, in a short transaction of its own.
select tocsin.extend_datapoints(%(first)s::date, %(last)s::date)
