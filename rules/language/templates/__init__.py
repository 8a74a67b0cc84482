"""Templates: Jinja2 over plain data, in a sandbox that is smaller than Jinja's own.

Guarantee: a template reads the data it is given and nothing else. There are no methods, no
attributes of Python objects, no macros and no includes; the only function is `range`. Work and
output are bounded, so that no template and no payload can hang a worker or fill its memory. Syntax,
names and filters are checked when the rule is loaded.

Why so little of Jinja: its sandbox keeps a template from reaching out, but not from looping forever
or from building a gigabyte. The rest can be bounded in a page of code.

Entry points: the loader calls `check_template`, the engine and the steps of actions call `fill_text`
and its variants.

On failure: `InvalidInput`, one sentence with the line. `check_template` returns every problem with
its position.
"""

from rules.language.templates.budget import budget
from rules.language.templates.checks import check_template
from rules.language.templates.compile import fixed_part
from rules.language.templates.render import fill, fill_html, fill_subject, fill_text
from rules.language.templates.structure import TemplateProblem

__all__ = [
    "TemplateProblem",
    "budget",
    "check_template",
    "fill",
    "fill_html",
    "fill_subject",
    "fill_text",
    "fixed_part",
]
