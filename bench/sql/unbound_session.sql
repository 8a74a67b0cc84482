-- Filling a million rows takes longer than a service may hold anything.
set statement_timeout = 0
