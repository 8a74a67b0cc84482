-- The keys of the series of some owners. Index: current_value's key.
select owner, key from tocsin.current_value where owner = any (%(owners)s::text[])
