-- How many timers are held because the pipeline is behind, counted up to a number, and for how long the
-- oldest of them waits. Locks nothing. Index: timer_due; the keys of current_value, alarm, rule_state and lane_partition.
select count(*) as held, tocsin.instant() - min(h.nominal_at) as held_for
from (select t.nominal_at from tocsin.held_timer t limit %(most)s) h
