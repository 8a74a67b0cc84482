-- What an outage left behind and no clock has settled yet.
select count(*) from tocsin.timer where fire_at < tocsin.instant() - interval '10 seconds'
