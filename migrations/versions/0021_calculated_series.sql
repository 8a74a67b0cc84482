-- Calculated series: results of calc_rules are calculated datapoints, and the position up to which
-- their windows were calculated.

create table tocsin.lock_calculation ();
revoke all on tocsin.lock_calculation from public;
comment on table tocsin.lock_calculation is
    'Lock for calculating windows, without rows. See tocsin.try_lock_calculation().';

create function tocsin.try_lock_calculation() returns boolean
language plpgsql volatile security definer
set search_path = tocsin, pg_temp
as $$
begin
    lock table tocsin.lock_calculation in share row exclusive mode nowait;
    return true;
exception
    when lock_not_available then
        return false;
end
$$;
comment on function tocsin.try_lock_calculation is
    'Takes the lock for calculating windows until the transaction ends. False if another session has it.';
revoke all on function tocsin.try_lock_calculation() from public;

alter table tocsin.datapoint_calculated drop constraint datapoint_calculated_kind_check;
alter table tocsin.datapoint_calculated
    add constraint datapoint_calculated_kind_check check (kind in ('stale', 'fresh', 'health', 'calc'));
comment on table tocsin.datapoint_calculated is
    'Datapoints that Tocsin derives: a series became stale or fresh, the health of a system '
    'changed, or a calc_rule gave a value. Written by tocsin.append for the clock (stale) and the '
    'workers.';
comment on column tocsin.datapoint_calculated.kind is
    'Kind of calculated datapoint: stale, fresh, health or calc.';
-- calc_rules read the results of others.
create index datapoint_calculated_result
    on tocsin.datapoint_calculated (split_part(key, '{', 1), ts) where kind = 'calc';
-- calc_rules read the series of a key, with and without dimensions.
create index current_value_base_key on tocsin.current_value (split_part(key, '{', 1));

create table tocsin.calc_position (
    only_row boolean primary key default true check (only_row),
    until timestamptz,
    rules_seq bigint,
    rules_begin timestamptz
) with (fillfactor = 50);
insert into tocsin.calc_position default values;
comment on table tocsin.calc_position is
    'How far the windows of calc_rules were calculated: one row. Written by the worker that '
    'calculates, in the transaction of the results.';
comment on column tocsin.calc_position.until is 'End of the last window that was calculated; null before the first.';
comment on column tocsin.calc_position.rules_seq is
    'Seq of the rules-applied event of the apply whose documents calculated it.';
comment on column tocsin.calc_position.rules_begin is
    'Instant from which these documents calculate windows.';
