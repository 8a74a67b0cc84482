-- The present instant of the database.
select tocsin.instant()
