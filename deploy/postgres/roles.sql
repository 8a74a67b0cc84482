-- Roles for Tocsin on your own Postgres: one for the services, and one for people who only read.
-- Run it once, as the role that ran `tocsin migrate`, with the right to create roles:
--
--     psql "$TOCSIN_POSTGRES" -v ON_ERROR_STOP=1 -f deploy/postgres/roles.sql
--
-- The owner of the schema is then needed only for migrations and for `tocsin prune`. Only a
-- superuser can write the record log directly, regardless of what is granted: triggers and row
-- security protect its tables, and `tocsin.append` writes them.

create role tocsin_service login;
create role tocsin_reader;

grant usage on schema tocsin to tocsin_service, tocsin_reader;
grant select on all tables in schema tocsin to tocsin_service, tocsin_reader;
grant select on public.tocsin_migration to tocsin_service, tocsin_reader;

-- Services may change everything except the log.
grant insert, update, delete on all tables in schema tocsin to tocsin_service;
revoke insert, update, delete on tocsin.event, tocsin.action_step, tocsin.datapoint_calculated,
    tocsin.log_commit, tocsin.log_head, tocsin.log_gap from tocsin_service;
grant execute on all functions in schema tocsin to tocsin_service;

-- The same for objects that later migrations add.
alter default privileges in schema tocsin grant select on tables to tocsin_service, tocsin_reader;
alter default privileges in schema tocsin grant insert, update, delete on tables to tocsin_service;
alter default privileges in schema tocsin grant execute on functions to tocsin_service;
