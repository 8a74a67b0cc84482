-- Assign the next seq as tocsin.append does: insert one row, and read the largest of them.
with head as (select coalesce(max(last_seq), 0) + 1 as next from tocsin.log_commit)
insert into tocsin.log_commit (last_seq, first_seq, recorded_at) select next, next, tocsin.instant() from head
returning last_seq
