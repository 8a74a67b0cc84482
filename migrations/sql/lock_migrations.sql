-- One migrator at a time, until its transaction ends. The others wait as long as it takes: with the
-- lock_timeout of their session they would fail. Not an advisory lock: any role could hold that.
lock table public.tocsin_migration in share row exclusive mode
