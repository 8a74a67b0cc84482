-- The table of a service, with one key.
create table if not exists effect (seq bigint primary key, id uuid not null, at timestamptz not null, note text not null)
