-- Removes all datapoints between two measurements.
truncate tocsin.datapoint
