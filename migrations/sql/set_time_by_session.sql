-- For the databases of tests alone: sessions set the time with the setting tocsin.now. Only the owner of
-- the schema can replace the function.
create or replace function tocsin.instant() returns timestamptz
language sql volatile parallel safe
as $$
    select coalesce(nullif(current_setting('tocsin.now', true), '')::timestamptz, clock_timestamp())
$$
