-- The time of the database, which all services use.
select tocsin.instant()
