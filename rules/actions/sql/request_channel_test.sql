-- Ask a worker for a test of a channel, and wake the workers at commit. Also removes the tests of
-- earlier days. Index: channel_test_requested.
with old as (
    delete from tocsin.channel_test where requested_at < (select tocsin.instant()) - interval '1 day'
)
insert into tocsin.channel_test (id, channel, transition, requested_by)
values (%(id)s, %(channel)s, %(transition)s, %(who)s)
returning pg_notify('tocsin_channel_test', '')
