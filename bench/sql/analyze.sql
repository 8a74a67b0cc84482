-- Updates the statistics of the planner and cleans the heap, so that both loops start alike.
vacuum (analyze) tocsin.timer
