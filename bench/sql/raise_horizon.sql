-- Moves the start of the log behind a few records.
with filled as (
    select tocsin.append(array_agg(
        row(gen_random_uuid(), timestamptz '2026-01-01Z', 'caused', 'filled', null, null, null, null, null, null, null, null,
            null, '{}')::tocsin.event_input)) as head
    from generate_series(1, 10)
)
select tocsin.raise_horizon(f.head, 0) from filled f
