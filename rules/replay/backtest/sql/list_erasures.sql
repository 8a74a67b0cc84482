-- Owners whose data was erased, and when: there are only a few in the life of a database.
select owner, arrived_until from tocsin.erasure order by seq
