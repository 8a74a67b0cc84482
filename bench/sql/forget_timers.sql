-- The next loop begins with an empty working set.
truncate tocsin.timer
