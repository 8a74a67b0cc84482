-- TS001 if another clock leads. The last statement before COMMIT.
select tocsin.append(expected_epoch => %(epoch)s)
