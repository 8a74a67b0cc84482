"""The rights of each role, as a table. A letter is a right: Select, Insert, Update, Delete.

`reader` has `rows` where row security shows it the rows of its owners (`tocsin.owner_grant`), and `-`
where it sees nothing. `tocsin_api` has what an author and an operator have, because it acts for both.
`tocsin_client` has no right on any table.
"""

from __future__ import annotations

from types import MappingProxyType

ROLES = MappingProxyType(
    {
        "tocsin_clock": "fires timers, and removes old rows",
        "tocsin_cdc": "publishes the record log",
        "tocsin_worker": "evaluates rules and performs actions",
        "tocsin_author": "applies rule files",
        "tocsin_operator": "acts on a running instance: commands of people",
        "tocsin_api": "serves the HTTP API",
        "tocsin_client": "services that schedule in their own transactions",
        "tocsin_reader": "reads the rows of its owners",
    }
)

_TABLES = """
table                 clock  cdc  worker  author  operator  reader
action                SUD    S    SIU     SU      SUD       rows
action_event          SD     -    SI      S       SD        -
action_limit          SD     -    SIU     S       SD        -
action_step           S      S    S       S       S         rows
action_wait           SD     -    SIUD    SD      SIUD      -
alarm                 SUD    S    SIUD    SIUD    SUD       rows
api_answer            -      -    -       -       -         -
api_login             -      -    -       -       -         -
api_session           -      -    -       -       -         -
api_token             -      -    -       -       -         -
arrival_gap           SD     S    SI      S       SD        -
audit                 S      -    S       S       S         -
audit_seal            S      -    -       -       S         -
calc_position         S      -    SU      S       S         -
cdc_report            S      SU   S       S       S         -
channel_test          -      -    SU      -       SID       -
current_value         SUD    S    SIU     SU      SUD       rows
datapoint             S      -    SI      S       S         rows
datapoint_calculated  S      S    S       S       S         rows
datapoint_kept        SIUD   -    S       S       SIUD      rows
erasure               S      S    S       S       S         -
event                 S      S    S       S       S         rows
event_kept            S      -    S       S       S         rows
event_lineage         SD     -    SIU     S       SD        -
held_timer            S      S    S       S       S         -
ingest_event          SD     -    SI      S       SD        -
instance_key          -      -    -       -       -         -
lane_partition        SU     S    SIU     SU      SU        -
lane_worker           S      S    SIUD    S       S         -
lock_audit            -      -    -       -       -         -
lock_calculation      -      -    -       -       -         -
lock_health           -      -    -       -       -         -
lock_log              -      -    -       -       -         -
lock_partitions       -      -    -       -       -         -
lock_prune            -      -    -       -       -         -
lock_rules            -      -    -       -       -         -
lock_tz_version       -      -    -       -       -         -
log_commit            S      S    S       S       S         -
log_gap               S      S    S       S       S         -
log_head              S      S    S       S       S         -
member_alarm          S      -    SIUD    SID     S         -
member_observation    S      -    SD      SD      S         -
member_series         S      -    SIUD    SID     S         -
message_attempt       -      -    SIUD    -       S         -
owner_grant           -      -    -       -       S         -
pipeline_report       SU     -    S       S       S         -
prune_report          SU     -    S       S       SU        -
rule_cutover          SD     -    S       SI      SD        -
rule_state            SUD    S    SIUD    SIUD    SUD       -
rule_version          SD     S    S       SIU     SD        -
schedule              SUD    -    SIU     SIU     SIUD      rows
setting               SIU    -    S       S       S         -
silence               SUD    S    SIU     SIU     SIUD      -
system_health         S      S    SU      SIUD    S         -
system_member         S      -    SIUD    SID     S         -
timer                 SIUD   S    SIUD    SIUD    SIUD      -
"""

_ALL = "clock cdc worker author operator client reader"
_FUNCTIONS = MappingProxyType(
    {
        "add_login": "api",
        "add_token": "api",
        "adopt": "operator",
        "adopt_inside": "operator",
        "append": "clock cdc worker author operator",
        "arm": "worker author operator",
        "audit_digest": "",
        "begin_erasure": "",
        "begin_session": "api",
        "cancel": "worker author operator",
        "cancel_all": "worker author operator",
        "check_generation": "",
        "check_grants": "",
        "check_schedule": "author operator client",
        "claim_prune": "clock operator",
        "deadline_after_gaps": "clock cdc worker author operator",
        "drop_partition": "clock operator",
        "duration_text": _ALL,
        "end_erasure": "",
        "end_session": "api",
        "erase_audit": "",
        "erase_kept_events": "",
        "erase_records": "",
        "extend_datapoints": "worker",
        "extend_log": "clock cdc worker",
        "find_answer": "api",
        "first_hole": "cdc operator",
        "forget_commits": "clock operator",
        "guard": "",
        "instant": _ALL,
        "is_member": _ALL,
        "is_pruning": "clock cdc worker author operator",
        "is_readable": _ALL,
        "is_reserved_type": _ALL,
        "is_trusted": _ALL,
        "keep_answer": "api",
        "link_signature": "worker api",
        "list_sessions": "api",
        "list_tokens": "api",
        "lock_health": "author",
        "lock_log": "author",
        "lock_rules": "author",
        "lock_tz_version": "clock",
        "log_tables": "clock cdc worker author operator",
        "message_token": "worker",
        "move_records": "",
        "open_session": "api",
        "own_patterns": _ALL,
        "owner_matches": _ALL,
        "principal": _ALL,
        "protect_rows": "",
        "prune_audit": "clock operator",
        "raise_epoch": "clock",
        "raise_horizon": "clock operator",
        "record_gap": "cdc operator",
        "record_observations": "",
        "recurrence_at": _ALL,
        "recurrence_text": _ALL,
        "refuse_direct_write": "",
        "refuse_reserved_type": "",
        "release_prune": "clock operator",
        "replace_schedule": "",
        "report": "worker client",
        "report_token": "worker",
        "require_owner": "",
        "revoke_session": "api",
        "revoke_token": "api",
        "schedule_cancel": "author operator client",
        "schedule_cancel_all": "author operator client",
        "schedule_cancel_id": "author operator client",
        "schedule_difference": "",
        "schedule_move": "author operator client",
        "schedule_once": "author operator client",
        "schedule_recurring": "author operator client",
        "seal_audit": "clock operator",
        "series_deadline": "clock cdc worker author operator",
        "share_tz_version": "worker author operator client",
        "stamp_audit": "",
        "take_over": "clock",
        "token": _ALL,
        "try_lock_calculation": "worker",
        "try_lock_health": "worker",
        "try_share_log": "worker",
        "use_session": "api",
        "use_token": "api",
        "write_audit": "clock cdc worker author operator",
    }
)
_RIGHTS = MappingProxyType({"S": "select", "I": "insert", "U": "update", "D": "delete"})


def table_grants() -> dict[str, dict[str, frozenset[str]]]:
    """The rights of each role by table; a table without any has an empty entry."""
    head, *lines = (line.split() for line in _TABLES.strip().splitlines())
    grants: dict[str, dict[str, frozenset[str]]] = {}
    for table, *cells in lines:
        rights = dict(zip(head[1:], cells, strict=True))
        roles = {f"tocsin_{role}": _rights_of(cell) for role, cell in rights.items()}
        roles["tocsin_api"] = roles["tocsin_author"] | roles["tocsin_operator"]
        grants[table] = {role: granted for role, granted in roles.items() if granted}
    return grants


def tables_with_row_security() -> list[str]:
    """The tables that `tocsin_reader` sees row by row."""
    lines = [line.split() for line in _TABLES.strip().splitlines()[1:]]
    return [line[0] for line in lines if line[-1] == "rows"]


def function_grants() -> dict[str, frozenset[str]]:
    """The roles that may execute each function."""
    return {name: _with_api(roles.split()) for name, roles in _FUNCTIONS.items()}


def _with_api(components: list[str]) -> frozenset[str]:
    more = ["api"] if {"author", "operator"} & set(components) else []
    return frozenset(f"tocsin_{component}" for component in [*components, *more])


def _rights_of(cell: str) -> frozenset[str]:
    if cell == "rows":
        return frozenset({"select"})
    return frozenset(_RIGHTS[letter] for letter in cell if letter != "-")
