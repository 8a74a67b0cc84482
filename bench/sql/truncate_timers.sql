-- Empties the working set for the next loop.
truncate tocsin.timer
