-- Accept that records are gone. Takes the lock of the log; TS005 if there is no such hole. A second
-- publisher that records the same gap fails at its commit (log_gap_apart).
select tocsin.record_gap(%(first)s, %(last)s, %(reason)s, %(who)s)
