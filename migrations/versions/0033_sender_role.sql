-- The role sender: sends datapoints, check-ins and events for its owners, and reads nothing.

create or replace function tocsin.check_grants(grants text[]) returns void
language plpgsql immutable
as $$
declare
    entry text;
begin
    if coalesce(cardinality(grants), 0) not between 1 and 50 then
        raise exception 'a principal needs 1 to 50 grants' using errcode = 'TS002';
    end if;
    foreach entry in array grants loop
        if entry !~ '^(viewer|responder|author|approver|sender|operator|admin):[^*]{0,128}[*]?$'
            or entry ~ ':$' then
            raise exception '% is not a grant: write role:owner or role:beginning*', quote_literal(entry)
                using errcode = 'TS002';
        end if;
    end loop;
end
$$;
