-- Accept that records are gone. Takes the log's lock; TS005 if there is no such hole. A second publisher that records the
-- same one fails at its commit (log_gap_apart).
select tocsin.record_gap(%(first)s, %(last)s, %(reason)s, %(who)s)
