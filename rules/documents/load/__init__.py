"""Rules from YAML files: read, validated and checked together, with the place of every mistake.

Guarantee: what `load_files` returns can be applied as it is. If anything is wrong, `RulesInvalid` lists
all of it, one `file:line:column: message` per line, and nothing is returned.
"""

from rules.documents.load.loader import Document, Loaded, load_files, load_text
from rules.documents.load.problems import Problem, RulesInvalid
from rules.documents.load.recurrences import recurrence_arguments, recurrence_of

__all__ = [
    "Document",
    "Loaded",
    "Problem",
    "RulesInvalid",
    "load_files",
    "load_text",
    "recurrence_arguments",
    "recurrence_of",
]
