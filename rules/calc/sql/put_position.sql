-- Moves the position of the calculation. The caller holds its lock. No row: another transaction has
-- moved it, and nothing of this one may commit.
update tocsin.calc_position p
set until = %(until)s, rules_seq = %(rules_seq)s, rules_begin = %(rules_begin)s
where p.until is not distinct from %(expected)s::timestamptz
returning 1
