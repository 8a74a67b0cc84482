-- Insert one partition of the data lane.
insert into tocsin.lane_partition (lane, partition) values ('data', 0) on conflict do nothing
