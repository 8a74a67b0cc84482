-- Removes all timers between two measurements.
truncate tocsin.timer
