-- Creates the partition for the datapoints of one day.
select tocsin.extend_datapoints(%(day)s, %(day)s)
