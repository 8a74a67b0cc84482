-- The keys of the series of an owner. Reads the primary key of current_value. No lock.
select key from tocsin.current_value where owner = %(owner)s limit %(limit)s
