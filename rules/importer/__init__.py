"""Translates rules of other systems into documents: Prometheus rule files and crontabs.

Guarantee: a document that is returned passes `tocsin check`. A rule that has no exact or nearly exact
translation is not translated; its problem names the file, the line and the reason. A translation that
rests on an assumption has a note that names it.

Pure: no I/O.
"""

from rules.importer.crontab import translate_crontab
from rules.importer.prometheus import translate_prometheus
from rules.importer.translation import ImportedRule, Translation

__all__ = ["ImportedRule", "Translation", "translate_crontab", "translate_prometheus"]
