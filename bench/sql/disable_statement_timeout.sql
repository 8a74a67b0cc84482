-- Filling a million rows takes longer than the statement timeout of a service.
set statement_timeout = 0
