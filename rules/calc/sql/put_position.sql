-- Moves the position of the calculation. The caller holds its lock. No row: another transaction has
-- moved it, and nothing of this one may commit.
insert into tocsin.calc_position as p (only_row, until, rules_seq, rules_begin)
values (true, %(until)s, %(rules_seq)s, %(rules_begin)s)
on conflict (only_row) do update
set until = excluded.until, rules_seq = excluded.rules_seq, rules_begin = excluded.rules_begin
where p.until is not distinct from %(expected)s::timestamptz
returning 1
