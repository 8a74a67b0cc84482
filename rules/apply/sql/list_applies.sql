-- The seqs of all applies that changed something, in order.
select from_seq from tocsin.rule_version
union
select until_seq from tocsin.rule_version where until_seq is not null
order by 1
