-- The first lock of every batch: the partition, if this worker still holds it at the expected
-- position. No row: another worker has taken it, and nothing of this batch may commit.
update tocsin.lane_partition
set last_seq = %(last_seq)s,
    last_source_seq = greatest(last_source_seq, %(last_source_seq)s),
    last_stored_at = %(last_stored_at)s,
    last_gap_at = %(last_gap_at)s,
    watermark = greatest(watermark, %(watermark)s),
    held_until = tocsin.instant() + make_interval(secs => %(ttl_s)s)
where lane = %(lane)s and partition = %(partition)s and holder = %(holder)s and last_seq = %(expected)s
    and last_gap_at is not distinct from %(expected_gap)s
