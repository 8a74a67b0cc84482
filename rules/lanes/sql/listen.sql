-- Wakes this session when a worker releases a partition.
listen tocsin_lanes
