-- One plan for every read: planning again takes longer than reading (0.45 ms a read against 0.2 with
-- up to 50 partitions).
set plan_cache_mode = force_generic_plan
