-- The last result of the leading publisher, and its age in seconds.
select r.at, r.holder, r.head, r.first_seq, r.last_seq, r.lag_s, r.compared, r.problem, r.detail, r.remedy, r.seq, r.since,
       extract(epoch from tocsin.instant() - r.at)::double precision as age_s
from tocsin.cdc_report r
