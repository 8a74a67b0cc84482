-- All recorded gaps, oldest first: there are only a few in the life of a database.
select from_seq, until_seq, reason, who, at from tocsin.log_gap order by from_seq
