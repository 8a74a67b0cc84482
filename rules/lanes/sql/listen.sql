-- Woken when somebody gives a partition back.
listen tocsin_lanes
