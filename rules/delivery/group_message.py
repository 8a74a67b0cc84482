"""Builds the default message about a group of alarms. Pure: no I/O, and time is an argument.

Guarantee: the message shows the group as it is now: how many alarms are open, acknowledged, snoozed
and resolved, the highest severity of those that are open, and a line for each alarm with its state,
value and start. The most urgent come first: open alarms by severity and age, then acknowledged and
snoozed ones, then resolved ones. The list is cut, and the rest is counted ("and 37 more"). A group
of one alarm has the texts of `alarm_message`; its JSON has the form of a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rules.delivery import mail_page
from rules.delivery.alarm_facts import UTC_VIEW, AlarmFacts, MessageKind, MessageView, label_of, time_between
from rules.delivery.alarm_message import (
    alarm_message,
    alarm_payload,
    colour_of,
    cut,
    emoji_of,
    links_of,
    value_with_first,
)
from rules.delivery.message import Message
from rules.delivery.slack import header, section
from tocsin.core.instant import instant_text

MAX_LISTED = 50
_MAX_LISTED_IN_SLACK = 15
_MAX_IN_PAYLOAD = 100
_MAX_LINE_LENGTH = 160
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def group_message(
    members: Sequence[AlarmFacts],
    kind: MessageKind,
    at: datetime,
    view: MessageView = UTC_VIEW,
    *,
    group: Mapping[str, object] | None = None,
) -> Message:
    """Build the message of a group at `at`.

    `kind` is the occasion: `opened` for the first message, `changed` when members joined or
    resolved, `resolved` if all have, `reminder` or `silence-ended`. `group` has the values of
    `group_by` by their paths.
    """
    ordered = sorted(members, key=_urgency)
    payload = _payload(ordered, kind, at, view, group or {})
    if len(ordered) == 1:
        single = alarm_message(ordered[0], kind, at, view)
        return Message(single.subject, single.text, html=single.html, blocks=single.blocks, payload=payload)
    subject = _subject(ordered, kind, group or {})
    counts = _counts_text(ordered)
    severity = worst_severity(ordered)
    return Message(
        subject,
        "\n".join([subject, "", counts, "", *_lines(ordered, at, view, MAX_LISTED)]) + "\n",
        html=_html(ordered, kind, at, view, subject, counts),
        blocks=[
            header(f"{emoji_of(severity, kind)} {subject}"),
            section("\n".join([counts, "", *_lines(ordered, at, view, _MAX_LISTED_IN_SLACK)])),
        ],
        payload=payload,
    )


def worst_severity(members: Sequence[AlarmFacts]) -> str | None:
    """The highest severity of the open alarms, or of all if none is open."""
    open_members = [member for member in members if member.is_open]
    return max(open_members or members, key=lambda member: member.rank).severity


def counts_of(members: Sequence[AlarmFacts]) -> dict[str, int]:
    """How many alarms are in each state: `open` counts those without an acknowledgement or snooze."""
    counts = {"open": 0, "acknowledged": 0, "snoozed": 0, "resolved": 0}
    for member in members:
        counts[_state(member)] += 1
    return counts


def _state(member: AlarmFacts) -> str:
    if not member.is_open:
        return "resolved"
    if member.acknowledged_by:
        return "acknowledged"
    return "snoozed" if member.snoozed_until else "open"


_STATES = ("open", "acknowledged", "snoozed", "resolved")


def _urgency(member: AlarmFacts) -> tuple[int, int, datetime, str]:
    began_at = member.began_at or _LONG_AGO
    return (_STATES.index(_state(member)), -member.rank, began_at, str(member.alarm_id or ""))


def _subject(members: Sequence[AlarmFacts], kind: MessageKind, group: Mapping[str, object]) -> str:
    counts = counts_of(members)
    unresolved = len(members) - counts["resolved"]
    if not unresolved:
        number = f"all {len(members)} alarms"
        label = label_of(None, "resolved")
    else:
        resolved = f", {counts['resolved']} resolved" if counts["resolved"] else ""
        number = f"{unresolved} open{resolved}"
        label = label_of(worst_severity(members), kind if kind != "resolved" else "changed")
    return f"[{label}] {number}: {_common_name(members)}{_group_text(members, group)}"


def _common_name(members: Sequence[AlarmFacts]) -> str:
    """The name of the rule if there is only one, else the first two names and how many there are."""
    names = list(dict.fromkeys(member.name for member in members))
    if len(names) <= 2:
        return ", ".join(names)
    return f"{', '.join(names[:2])} and {len(names) - 2} more rules"


def _group_text(members: Sequence[AlarmFacts], group: Mapping[str, object]) -> str:
    values = {path.rpartition(".")[2]: value for path, value in group.items()}
    owners = {member.owner for member in members}
    if len(owners) == 1 and "owner" not in values and None not in owners:
        values["owner"] = owners.pop()
    values.pop("rule", None)
    shown = [
        str(value) if name == "owner" else f"{name} {cut(value, 60)}"
        for name, value in values.items()
        if value not in (None, "")
    ]
    return f" ({', '.join(shown)})" if shown else ""


def _counts_text(members: Sequence[AlarmFacts]) -> str:
    return ", ".join(f"{count} {state}" for state, count in counts_of(members).items() if count)


def _lines(members: Sequence[AlarmFacts], at: datetime, view: MessageView, limit: int) -> list[str]:
    lines = [_line(member, at, view) for member in members[:limit]]
    return [*lines, *_rest(members, limit)]


def _rest(members: Sequence[AlarmFacts], limit: int) -> list[str]:
    return [f"and {len(members) - limit} more"] if len(members) > limit else []


def _line(member: AlarmFacts, at: datetime, view: MessageView) -> str:
    owner = f" ({member.owner})" if member.owner else ""
    detail = _detail(member)
    line = f"[{_label(member)}] {member.name}{owner}{f': {detail}' if detail else ''}"
    since = member.began_at
    when = f", since {view.instant(since)}" if since else ""
    if since and not member.is_open:
        when = f", lasted {time_between(since, member.resolved_at or at)}"
    return f"{cut(line, _MAX_LINE_LENGTH)}{when}"


def _label(member: AlarmFacts) -> str:
    severity, status = (member.severity or "alarm").upper(), member.status
    if status.startswith("resolved"):
        return status.replace("resolved", "RESOLVED", 1)
    return severity if status == "open" else f"{severity} {status}"


def _detail(member: AlarmFacts) -> str:
    """The value with its threshold, or the message if the alarm has no value."""
    value = value_with_first(member)
    if not value:
        return cut(member.message, _MAX_LINE_LENGTH) or ""
    threshold = f", threshold {member.threshold}" if member.threshold else ""
    return f"{f'{member.key} ' if member.key else ''}{value}{threshold}"


def _html(
    members: Sequence[AlarmFacts],
    kind: MessageKind,
    at: datetime,
    view: MessageView,
    subject: str,
    counts: str,
) -> str:
    rows = [
        [
            member.severity or "",
            f"{member.name}{f' ({member.owner})' if member.owner else ''}",
            cut(_detail(member), _MAX_LINE_LENGTH) or "",
            member.status,
            view.instant(member.began_at) if member.began_at else "",
        ]
        for member in members[:MAX_LISTED]
    ]
    is_over = not any(member.is_open for member in members)
    label, _, heading = subject.removeprefix("[").partition("] ")
    urls = links_of(members[0], view)
    urls.pop("Open alarm", None)
    if view.console_url:
        urls = {"Open alarms": f"{view.console_url}/alarms", **urls}
    return mail_page.page(
        colour_of(worst_severity(members), "resolved" if is_over else kind),
        label,
        heading,
        [
            mail_page.paragraph(counts, dim=True),
            mail_page.list_table(("Severity", "Alarm", "Value", "State", "Since"), rows),
            *[mail_page.paragraph(line, dim=True) for line in _rest(members, MAX_LISTED)],
            mail_page.links(urls),
        ],
    )


def _payload(
    members: Sequence[AlarmFacts],
    kind: MessageKind,
    at: datetime,
    view: MessageView,
    group: Mapping[str, object],
) -> dict[str, Any]:
    return {
        "type": "alarm-group",
        "occasion": kind,
        "state": "open" if any(member.is_open for member in members) else "resolved",
        "severity": worst_severity(members),
        "group": dict(group),
        "counts": counts_of(members),
        "at": instant_text(at),
        "alarms": [
            alarm_payload(member, "opened" if member.is_open else "resolved", at, view)
            for member in members[:_MAX_IN_PAYLOAD]
        ],
        "more": max(0, len(members) - _MAX_IN_PAYLOAD),
    }
