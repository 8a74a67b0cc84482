-- Copies the lines of a batch, before its transaction takes any lock.
copy pg_temp.staged_datapoint from stdin
