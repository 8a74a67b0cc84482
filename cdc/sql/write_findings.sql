-- Store the numbers of a stream check. Locks the one row.
update tocsin.cdc_report
set at = tocsin.instant(), holder = %(holder)s, head = %(head)s, first_seq = %(first_seq)s, last_seq = %(last_seq)s,
    lag_s = %(lag_s)s, compared = %(compared)s
