from rules.delivery.alarm_message import alarm_message
from rules.delivery.group_message import group_message
from rules.delivery.webhook import json_body
from tests.rules.delivery.golden_files import LATER as AT
from tests.rules.delivery.golden_files import MEMBERS, RESOLVED, member


def test_a_group_names_every_alarm_its_counts_and_the_worst_severity() -> None:
    message = group_message(MEMBERS, "changed", AT)
    assert message.subject == "[CRITICAL changed] 3 open, 1 resolved: CPU overheats, disk-full"
    for owner in ("db-1", "db-2", "db-3", "db-4"):
        assert owner in message.text
        assert owner in str(message.html)
        assert owner in str(message.blocks)
    assert "2 open, 1 acknowledged, 1 resolved" in message.text
    payload = message.payload or {}
    assert payload["counts"] == {"open": 2, "acknowledged": 1, "snoozed": 0, "resolved": 1}
    assert [alarm["owner"] for alarm in payload["alarms"]] == ["db-4", "db-2", "db-3", "db-1"]
    assert [alarm["state"] for alarm in payload["alarms"]] == ["open", "open", "open", "resolved"]


def test_the_severity_of_a_group_ignores_alarms_that_have_resolved() -> None:
    members = [member(1, severity="disaster", state="resolved"), member(2)]
    assert group_message(members, "changed", AT).subject.startswith("[WARNING changed]")


def test_a_group_whose_alarms_have_all_resolved_is_over() -> None:
    message = group_message(RESOLVED, "resolved", AT, group={"rule": "disk-full"})
    assert message.subject == "[RESOLVED] all 3 alarms: disk-full"
    assert (message.payload or {})["state"] == "resolved"


def test_a_large_group_is_cut_and_the_rest_is_counted() -> None:
    members = [member(number) for number in range(87)]
    message = group_message(members, "opened", AT)
    assert message.subject == "[WARNING] 87 open: disk-full"
    assert "and 37 more" in message.text
    assert "and 37 more" in str(message.html)
    assert "and 72 more" in str(message.blocks)
    many = group_message([member(number) for number in range(10_000)], "opened", AT)
    assert (many.payload or {})["more"] == 9_900
    assert len(json_body(many.payload or {})) < 100_000
    assert len(many.text) < 10_000


def test_a_group_of_one_alarm_reads_like_the_alarm_and_keeps_the_form_of_a_group() -> None:
    single, group = alarm_message(MEMBERS[1], "opened", AT), group_message([MEMBERS[1]], "opened", AT)
    assert (group.subject, group.text, group.html, group.blocks) == (
        single.subject,
        single.text,
        single.html,
        single.blocks,
    )
    assert (group.payload or {})["alarms"] == [single.payload]


def test_members_in_another_order_give_the_same_message() -> None:
    assert group_message(MEMBERS, "changed", AT) == group_message(MEMBERS[::-1], "changed", AT)
