-- The erasure of an owner that is not complete. Index: erasure_owner.
select seq, arrived_until from tocsin.erasure where owner = %(owner)s and ended_at is null order by seq desc limit 1
