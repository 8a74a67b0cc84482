"""Answers of promtool to the questions of tests, which need not be installed.

`promtool_answers.json` holds an answer for each question, by name, with a hash of the question. With
promtool on the path (Debian: the package prometheus, 2.42 or later) the question is asked again and must
have the recorded answer. Without it the recorded one is used, so the comparison runs everywhere.

After a change of a question: `TOCSIN_TEST_RECORD=1 python -m pytest -k promtool`, with promtool on the path.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from typing import Any

from tests.paths import ROOT

ANSWERS = ROOT / "tests" / "promtool_answers.json"


def promtool_answer(name: str, question: object, ask: Callable[[], Any]) -> Any:
    """The answer as plain JSON. `ask` runs promtool."""
    digest = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()
    is_recording = bool(os.environ.get("TOCSIN_TEST_RECORD"))
    asked = json.loads(json.dumps(ask())) if shutil.which("promtool") is not None else None
    if is_recording:
        assert asked is not None, "promtool is not on the path"
        _record(name, {"question": digest, "answer": asked})
    recorded = json.loads(ANSWERS.read_text(encoding="utf-8")).get(name, {})
    assert recorded.get("question") == digest, f"{name} has changed: record the answer of promtool again"
    assert asked is None or asked == recorded["answer"], f"promtool has another answer to {name}"
    return recorded["answer"]


def _record(name: str, answer: dict[str, Any]) -> None:
    answers = json.loads(ANSWERS.read_text(encoding="utf-8")) if ANSWERS.exists() else {}
    lines = [
        f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted({**answers, name: answer}.items())
    ]
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
