-- Append one event.
select tocsin.append(array[
    row(gen_random_uuid(), timestamptz '2026-01-01Z', 'caused', 'meanwhile', null, null, null, null, null, null, null, null,
        null, '{}')::tocsin.event_input])
