-- The planner's statistics and a clean heap, so that both loops start alike.
vacuum (analyze) tocsin.timer
