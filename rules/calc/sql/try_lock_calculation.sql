-- The lock for calculating windows until the end of the transaction. False: another worker calculates.
select tocsin.try_lock_calculation()
