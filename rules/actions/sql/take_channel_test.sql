-- Take the oldest test that is not older than a minute: its command has given up on older ones.
-- A test that another worker takes at the same time is skipped. Index: channel_test_new.
update tocsin.channel_test
set taken_at = tocsin.instant(), worker = %(worker)s
where id = (
    select id from tocsin.channel_test
    where taken_at is null and requested_at > (select tocsin.instant()) - interval '1 minute'
    order by requested_at
    limit 1
    for update skip locked
)
returning id, channel, transition, requested_by, taken_at
