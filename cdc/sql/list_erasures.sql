-- Owners whose data was erased, with the last erasure of each: there are only a few in the life of a database.
select owner, max(seq) from tocsin.erasure group by owner
