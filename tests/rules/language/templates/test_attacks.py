"""Templates and payloads written to break out or to break down: each ends soon, as an error or as
plain text."""

import time
import tracemalloc
from typing import Any

import pytest

from rules.language.templates import fill, fill_html, fill_text
from tocsin.core.errors import InvalidInput

DATA: dict[str, Any] = {
    "text": "x" * 100_000,
    "list": list(range(10_000)),
    "payload": {"__class__": "only data", "items": 1, "name": "{{ text }}{% for %}"},
}


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ ''['__class__'] }}",
        "{{ [].__class__.__base__ }}",
        "{{ payload.__init__.__globals__ }}",
        "{{ payload|attr('__class__') }}",
        "{{ payload|map(attribute='__class__.__mro__')|list }}",
        "{{ list|map('attr', '__class__')|list }}",
        "{{ self._TemplateReference__context }}",
        "{{ self }}",
        "{{ range.__globals__ }}",
        "{{ loop }}",
        "{% for x in list %}{{ loop._iterator }}{% endfor %}",
        "{% for x in list %}{{ loop.__class__ }}{% endfor %}",
        "{{ lipsum.__globals__['os'].popen('id').read() }}",
        "{{ cycler.__init__.__globals__.os }}",
        "{{ '{0.__class__}'.format(text) }}",
        "{{ payload.update({'a': 1}) }}",
        "{{ list.append(1) }}",
        "{{ '%s' % text }}",
        "{{ text|format(1) }}",
        "{% include '/etc/passwd' %}",
        "{{ payload|safe }}",
        "{{ payload._each }}",
        "{{ text|_each }}",
    ],
)
def test_a_template_reaches_nothing_but_its_data(template: str) -> None:
    for filled in (fill_text, fill_html, fill):
        with pytest.raises(InvalidInput):
            filled(template, DATA)


def test_keys_that_look_like_internals_are_only_data() -> None:
    assert fill_text("{{ payload.__class__ }} {{ payload.items }}", DATA) == "only data 1"


def test_a_payload_is_never_read_as_a_template() -> None:
    assert fill_text("{{ payload.name }}", DATA) == "{{ text }}{% for %}"
    assert fill("{{ payload.name }}", DATA) == "{{ text }}{% for %}"


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(1000000000) %}{% endfor %}",
        "{% for i in range(10**9) %}{% endfor %}",
        "{% for a in list %}{% for b in list %}{% for c in list %}{% endfor %}{% endfor %}{% endfor %}",
        "{% for a in range(10000) %}{% for b in range(10000) %}{% if a > b %}{% endif %}{% endfor %}{% endfor %}",
        "{% for a in list %}{{ list|sort|reverse|list|length }}{% endfor %}",
        "{% for a in list %}{{ list == list|list }}{% endfor %}",
        "{% for a in list %}{{ text }}{% endfor %}",
        "{{ 'a' * 1000000000 }}",
        "{{ 'a' * 10**9 }}",
        "{{ list * 1000000 }}",
        "{{ list + list }}",
        "{{ 'x'|center(1000000000) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ text|replace('x', text) }}",
        "{{ list|join(text) }}",
        "{{ text|indent(1000000000) }}",
        "{{ 1|round(1000000000, 'ceil') }}",
        "{{ list|batch(1000000000, 'x')|list }}",
        "{{ list|slice(1000000000)|list }}",
        "{{ 10 ** 10 ** 10 }}",
        "{% set x = 'a' %}" + "{% set x = x ~ x %}" * 64 + "{{ x }}",
        "{% set x = 'a' %}" + "{% set x = x + x %}" * 64 + "{{ x }}",
        "{% set x = [1] %}" + "{% set x = [x, x] %}" * 64 + "{{ x }}",
        "{% set x = 9 %}" + "{% set x = x * x %}" * 64 + "{{ x }}",
        "{% set x = '&<' * 1 %}" + "{% set x = x|e|string %}" * 64 + "{{ x }}",
        "{% macro f(n) %}{{ f(n - 1) }}{{ f(n - 1) }}{% endmacro %}{{ f(60) }}",
        "{{ text " + "~ text" * 50 + " }}",
    ],
)
def test_a_template_that_would_never_end_or_fill_the_memory_is_stopped(template: str) -> None:
    started = time.process_time()
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput):
            fill({"k": template}, DATA)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < 10
    assert peak < 60_000_000


def test_a_large_and_honest_template_is_not_stopped() -> None:
    alarms = [{"rule": f"rule-{n}", "owner": f"plant-{n % 7}", "value": n / 3} for n in range(2_000)]
    template = (
        "{% for owner, all in alarms|groupby('owner') %}{{ owner }}\n"
        "{% for one in all %}- {{ one.rule|upper }}: {{ one.value|round(2) }}\n{% endfor %}{% endfor %}"
    )
    assert fill_text(template, {"alarms": alarms}).count("\n") == 2_007
