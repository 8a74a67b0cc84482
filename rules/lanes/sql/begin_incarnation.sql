-- Continues in a stream that was created again: its sequences begin elsewhere. No row: another
-- worker holds the partition.
update tocsin.lane_partition
set last_seq = %(last_seq)s, incarnation = %(incarnation)s, last_stored_at = null
where lane = %(lane)s and partition = %(partition)s and holder = %(holder)s and last_seq = %(expected)s
