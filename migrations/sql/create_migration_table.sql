-- Outside the schema tocsin, which is itself made by a migration.
create table if not exists public.tocsin_migration (
    number integer primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default clock_timestamp()
)
