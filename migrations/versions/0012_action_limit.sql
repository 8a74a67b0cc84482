-- When rules with a `limit` started of late: at most as many instants as the limit allows.
create table tocsin.action_limit (
    action_rule text primary key,
    starts timestamptz[] not null
);
