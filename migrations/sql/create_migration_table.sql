-- Outside the schema tocsin, which the first migration creates.
create table if not exists public.tocsin_migration (
    number integer primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default clock_timestamp()
)
