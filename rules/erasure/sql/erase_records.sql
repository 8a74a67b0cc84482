-- A range of the log. Index: the keys of the log tables.
select tocsin.erase_records(%(seq)s, %(first)s, %(last)s)
