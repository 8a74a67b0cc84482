-- The stream was made anew: its sequences begin elsewhere. No row: the partition is no longer ours.
update tocsin.lane_partition
set last_seq = %(last_seq)s, incarnation = %(incarnation)s
where lane = %(lane)s and partition = %(partition)s and holder = %(holder)s and last_seq = %(expected)s
