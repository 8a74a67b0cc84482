-- Between two measurements.
truncate tocsin.datapoint
