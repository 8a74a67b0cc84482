-- The database's clock, the one authority on time.
select tocsin.instant()
