-- The keys of the series of some owners. Index: the key of current_value.
select owner, key from tocsin.current_value where owner = any (%(owners)s::text[])
