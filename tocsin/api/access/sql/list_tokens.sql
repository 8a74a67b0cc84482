-- All tokens without their digests, the oldest first.
select * from tocsin.list_tokens()
