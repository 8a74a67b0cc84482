"""Loads rule files: reads, validates and checks them together.

Guarantee: the documents that `load_files` returns can be applied. If anything is wrong,
`RulesInvalid` lists every problem, one `file:line:column: message` per line, and no document is
returned.

Entry points: the command line, rule tests and backtests call `load_files`.
"""

from rules.documents.load.loader import Document, LoadedDocuments, load_files, load_text
from rules.documents.load.problems import RuleProblem, RulesInvalid
from rules.documents.load.recurrences import recurrence_arguments, recurrence_of

__all__ = [
    "Document",
    "LoadedDocuments",
    "RuleProblem",
    "RulesInvalid",
    "load_files",
    "load_text",
    "recurrence_arguments",
    "recurrence_of",
]
