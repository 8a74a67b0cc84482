-- Count an attempt of a record that a consumer of batches handles alone; returns its number. Locks
-- the row of the consumer. One record at a time is handled, so one count is enough.
update tocsin_inbox
set attempts = case when attempted_seq = %(seq)s then attempts + 1 else 1 end, attempted_seq = %(seq)s
where stream = %(stream)s and consumer = %(consumer)s
returning attempts
