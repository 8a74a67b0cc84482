-- Roles for Tocsin on a Postgres of your own: one that the services log in as, and one for people who read. Run it once, as
-- the role that ran `tocsin migrate` and with the right to create roles:
--
--     psql "$TOCSIN_POSTGRES" -v ON_ERROR_STOP=1 -f deploy/postgres/roles.sql
--
-- The owner of the schema is then needed for migrations alone. Nobody but a superuser writes the record log by hand, whatever
-- else is granted: its tables are guarded by triggers and row security, and written by `tocsin.append`.

create role tocsin_service login;
create role tocsin_reader;

grant usage on schema tocsin to tocsin_service, tocsin_reader;
grant select on all tables in schema tocsin to tocsin_service, tocsin_reader;
grant select on public.tocsin_migration to tocsin_service, tocsin_reader;

-- What services change: everything but the log.
grant insert, update, delete on all tables in schema tocsin to tocsin_service;
revoke insert, update, delete on tocsin.event, tocsin.action_step, tocsin.datapoint_calculated, tocsin.log_commit,
    tocsin.log_head, tocsin.log_gap from tocsin_service;
grant execute on all functions in schema tocsin to tocsin_service;

-- And what later migrations add.
alter default privileges in schema tocsin grant select on tables to tocsin_service, tocsin_reader;
alter default privileges in schema tocsin grant insert, update, delete on tables to tocsin_service;
alter default privileges in schema tocsin grant execute on functions to tocsin_service;
