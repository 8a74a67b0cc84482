-- Whether the time of this database follows a setting of the session, as in the databases of tests.
select p.prosrc like '%%tocsin.now%%' from pg_proc p where p.oid = 'tocsin.instant()'::regprocedure
