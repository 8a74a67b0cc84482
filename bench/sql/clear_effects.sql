-- Empties the table of the service.
truncate effect
