-- Use one generic plan for all reads. Planning each read again takes longer than the read itself:
-- with up to 50 partitions, a read takes 0.45 ms with planning and 0.2 ms without.
set plan_cache_mode = force_generic_plan
