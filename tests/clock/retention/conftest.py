"""Settings under which retention removes everything that is old."""

from __future__ import annotations

import pytest

from tocsin.core.settings import Settings


@pytest.fixture
def short(settings: Settings) -> Settings:
    return settings.model_copy(update={"keep_events_per_rule": 0})
