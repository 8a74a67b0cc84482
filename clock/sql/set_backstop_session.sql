-- The backstop scans by index: a planner that cannot know what is due reads a million timers to
-- find none (500 ms against 1).
select set_config('enable_seqscan', 'off', false), set_config('max_parallel_workers_per_gather', '0', false)
