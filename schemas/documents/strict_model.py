"""The base of all models of documents, and the error of their validators.

Guarantee: unknown keys are errors, values are not converted, and a model does not change. An error
of a validator names the key of the file to point at.
"""

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

DOCUMENT_ERROR = "document"
"""Type of the errors that `document_error` makes. Their message follows the name of the
document."""

UNION_TAG = "union:"
"""Beginning of the tags of unions, which are no part of the path of an error."""


class StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def document_error(message: str, at_key: str = "") -> PydanticCustomError:
    """An error about a whole model: a predicate, such as "has both 'cron' and 'every': keep one".

    `at_key` is the key that the loader points at."""
    return PydanticCustomError(DOCUMENT_ERROR, "{text}", {"text": message, "at_key": at_key})
