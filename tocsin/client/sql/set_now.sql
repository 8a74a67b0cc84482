-- Set the time of this session, for tests: tocsin.instant() returns it.
select set_config('tocsin.now', %(now)s, false)
