-- Notes that an erasure is complete, with its numbers.
select tocsin.end_erasure(%(seq)s, %(counts)s)
