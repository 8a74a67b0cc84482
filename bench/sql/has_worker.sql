-- Whether a worker reads the record lane.
select exists (select from tocsin.lane_partition where lane = 'record' and holder is not null)
