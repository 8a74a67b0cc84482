-- Runs after the append of its event, because it stores the seq that the append assigned.
select tocsin.begin_erasure(%(seq)s, %(arrived_until)s)
