-- Applies: when the data lane began to use the rules of each, and the index that finds the newest.

-- An apply that only removes documents ends versions and begins none.
create index rule_version_until on tocsin.rule_version (until_seq);

-- Where a partition stood when an apply committed: it had read everything up to `seq`, and everything that arrived at or
-- before `complete_until`. What comes after is judged by the rules of that apply (`rules_seq`). Written by the apply, which
-- locks the partitions.
create table tocsin.rule_switch (
    lane text not null,
    partition integer not null,
    rules_seq bigint not null,
    seq bigint not null,
    complete_until timestamptz,
    primary key (lane, partition, rules_seq)
);
