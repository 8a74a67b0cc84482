-- Vacuum and analyze the timer table, so that every measurement starts with current statistics and no
-- dead rows.
vacuum (analyze) tocsin.timer
