-- One plan for every read, by index: planning again takes longer than reading (0.45 ms a read
-- against 0.2 with up to 50 partitions). Without sequential scans, because a plan made for an empty
-- table would be kept when it is full.
select set_config('plan_cache_mode', 'force_generic_plan', false), set_config('enable_seqscan', 'off', false)
