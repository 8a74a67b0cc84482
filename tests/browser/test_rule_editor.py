"""The rule editor in a real browser: problems at their place, completion, plan, replay, apply, roll-back."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, expect

from tests.browser.conftest import Visit
from tests.browser.visitor import Visitor

GOOD = """event_rule:
  name: room-hot
  datapoint: room.temperature
  fire: 'value > 30.0'
  for: 5m
  severity: high
"""
WITHIN_MS = 150_000


@pytest.fixture(autouse=True)
def slow_machine() -> None:
    expect.set_options(timeout=WITHIN_MS)


async def write(ann: Visitor, text: str) -> None:
    """Replace the text of the editor."""
    content = editor(ann)
    await content.click()
    await content.press("ControlOrMeta+a")
    await content.press("Delete")
    await ann.page.keyboard.insert_text(text)


def editor(ann: Visitor) -> Locator:
    return ann.page.locator(".cm-content")


def plan(ann: Visitor) -> Locator:
    return ann.page.locator("#plan")


async def test_a_problem_is_shown_at_its_column(visit: Visit) -> None:
    ann = await visit("author:*")
    await ann.open("/editor")
    await write(ann, GOOD.replace("severity: high", "severty: high"))
    await expect(plan(ann).locator("li")).to_contain_text("did you mean 'severity'?")
    await expect(plan(ann).locator(".place")).to_have_text("6:3")
    await expect(ann.page.locator(".cm-lintRange-error")).to_have_text("severty")
    await ann.expect_accessible()


async def test_the_cursor_decides_what_is_offered(visit: Visit) -> None:
    ann = await visit("author:*")
    await ann.open("/editor")
    await write(ann, "event_rule:\n  severity: ")
    await ann.page.keyboard.type("hi")
    options = ann.page.locator(".cm-tooltip-autocomplete li")
    await expect(options.first).to_contain_text("high")
    # Enter is ignored for a moment after the list opens, so that no quick typist chooses by accident.
    await options.first.click()
    await expect(editor(ann)).to_contain_text("severity: high")


async def test_a_pause_shows_the_plan_and_the_replay(visit: Visit) -> None:
    ann = await visit("approver:*")
    await ann.open("/editor")
    await write(ann, GOOD)
    await expect(plan(ann).locator("h3")).to_contain_text("event_rule room-hot")
    await expect(ann.page.locator("#replay")).to_contain_text("Pages a day now")
    await ann.page.get_by_role("button", name="Apply", exact=True).click()
    await expect(ann.page.locator("main")).to_contain_text("applied: 1 added")
    await ann.expect_accessible()


async def test_a_document_is_edited_and_rolled_back(visit: Visit) -> None:
    ann = await visit("approver:*")
    for text in (GOOD, GOOD.replace("30.0", "33.0")):
        await ann.open("/editor?kind=event_rule")
        await write(ann, text)
        await ann.page.get_by_role("button", name="Apply", exact=True).click()
        await expect(ann.page.locator("main")).to_contain_text("applied:")
    await ann.open("/editor/history?kind=event_rule&name=room-hot")
    await expect(ann.page.locator(".diff .added").first).to_contain_text("33.0")
    await ann.expect_accessible()
    await ann.page.get_by_role("link", name="Roll back to version 1").click()
    await expect(editor(ann)).to_contain_text("value > 30.0")
    await expect(plan(ann)).to_contain_text("value > 30.0")
    await ann.page.get_by_role("button", name="Apply", exact=True).click()
    await expect(ann.page.locator("main")).to_contain_text("applied: 1 changed")


async def test_an_author_cannot_apply(visit: Visit) -> None:
    ann = await visit("author:*")
    await ann.open("/editor")
    await expect(ann.page.get_by_role("button", name="Plan", exact=True)).to_be_visible()
    assert await ann.page.get_by_role("button", name="Apply", exact=True).count() == 0


async def test_without_a_script_the_forms_do_the_same(visit: Visit) -> None:
    ann = await visit("approver:*", java_script_enabled=False)
    await ann.open("/editor")
    await ann.page.get_by_label("Document").fill(GOOD.replace("severity: high", "severty: high"))
    await ann.page.get_by_role("button", name="Plan", exact=True).click()
    await expect(plan(ann)).to_contain_text("did you mean 'severity'?")
    await ann.page.get_by_label("Document").fill(GOOD)
    await ann.page.get_by_role("button", name="Replay", exact=True).click()
    await expect(ann.page.locator("#replay")).to_contain_text("Pages a day now")
    await ann.page.get_by_role("button", name="Apply", exact=True).click()
    await expect(ann.page.locator("main")).to_contain_text("applied: 1 added")
