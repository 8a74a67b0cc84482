-- The first lock of every batch: its partition, if it is still ours and still where we left it. No row: it was taken by
-- another worker, and nothing of this batch may commit.
update tocsin.lane_partition
set last_seq = %(last_seq)s,
    last_source_seq = greatest(last_source_seq, %(last_source_seq)s),
    watermark = greatest(watermark, %(complete)s),
    held_until = tocsin.instant() + make_interval(secs => %(ttl_s)s)
where lane = %(lane)s and partition = %(partition)s and holder = %(holder)s and last_seq = %(expected)s
