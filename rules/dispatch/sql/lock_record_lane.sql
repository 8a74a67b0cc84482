-- Locks the record lane, as its batches do first.
select from tocsin.lane_partition where lane = 'record' for update
