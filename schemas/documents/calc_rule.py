"""The `calc_rule` document: a calculated series, from other series.

Guarantee: every input has a range and two functions: `each` makes one number of the datapoints of
each series, `aggregate` one number of the series of a group. A combination of keys without an
effect is an error. The loader compiles `where` and `value`, and rejects rules that read each other
in a circle.
"""

from datetime import timedelta
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from schemas.documents.action_rule import MAX_CONDITION_LENGTH
from schemas.documents.strict_model import StrictModel, document_error
from schemas.values.annotation import Description
from schemas.values.calc_function import CalcFunction, GroupFunction, SeriesFunction
from schemas.values.duration import Duration, format_duration
from schemas.values.key_pattern import KeyPattern
from schemas.values.names import Name, Owner
from schemas.wire.calculated import CALC_PREFIX

MAX_RANGE = timedelta(days=7)
SHORTEST_EVERY = timedelta(seconds=1)
LONGEST_EVERY = timedelta(days=1)
OWNER = "owner"
BUCKET_LABEL = "le"
"""The label with the upper bound of a bucket of a histogram, as in Prometheus."""
_LAST, _SUM = CalcFunction("last"), CalcFunction("sum")


def _check_every(every: timedelta) -> timedelta:
    if not SHORTEST_EVERY <= every <= LONGEST_EVERY:
        raise ValueError("it must be from 1s to 1d")
    if every % SHORTEST_EVERY:
        raise ValueError("it must be whole seconds")
    return every


def _check_range(over: timedelta) -> timedelta:
    if not timedelta(0) < over <= MAX_RANGE:
        raise ValueError(f"it must be longer than 0s and at most {MAX_RANGE.days}d")
    return over


def _check_offset(offset: timedelta) -> timedelta:
    if offset > MAX_RANGE:
        raise ValueError(f"it must be at most {MAX_RANGE.days}d")
    return offset


Range = Annotated[Duration, AfterValidator(_check_range)]
InputName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
GroupLabel = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$", max_length=64)]


class CalcInput(StrictModel):
    """Series that become one number for each group."""

    key: KeyPattern = Field(
        description="Key of the series, or pattern. `calc.<name>` is the series of another calc_rule.",
        examples=["http.requests", "disk.*.free"],
    )
    where: Annotated[str, Field(max_length=MAX_CONDITION_LENGTH)] | None = Field(
        None,
        description="CEL condition over owner, key and labels that selects series.",
        examples=['labels.code.startsWith("5")'],
    )
    each: SeriesFunction = Field(
        _LAST,
        validate_default=True,
        description="Function over the datapoints of each series in the range: last, avg, min, max, sum, count, "
        "stddev, rate, increase, delta, changes, absent_for, quantile(0.95) or predict_linear(4h).",
        examples=["rate"],
    )
    over: Range | None = Field(
        None,
        description="Length of the range before the end of the window; by default `every`.",
        examples=["5m"],
    )
    offset: Annotated[Duration, AfterValidator(_check_offset)] = Field(
        timedelta(0), description="Moves the range into the past.", examples=["1h"]
    )
    late_after: Range | None = Field(
        None,
        description="A datapoint whose `ts` is older than its arrival by more than this is late and is ignored; "
        "by default the length of the range.",
        examples=["1m"],
    )
    aggregate: GroupFunction = Field(
        _SUM,
        validate_default=True,
        description="Function over the series of a group: sum, avg, min, max, count, stddev, quantile(0.95), "
        "histogram_quantile(0.95) over the label `le`, or absent (1 without a series, otherwise 0).",
        examples=["max"],
    )
    default: Annotated[float, Field(allow_inf_nan=False)] | None = Field(
        None,
        description="Value for a group without such a series; by default the group has no result.",
        examples=[0],
    )

    @model_validator(mode="after")
    def _has_no_key_without_effect(self) -> Self:
        if self.aggregate.name == "absent" and self.default is not None:
            raise document_error(
                "has 'default' beside 'aggregate: absent', which always has a value", "default"
            )
        if self.key.startswith(CALC_PREFIX) and "*" in self.key:
            raise document_error(
                f"reads '{self.key}': name each calc_rule that it reads, such as {CALC_PREFIX}error-ratio",
                "key",
            )
        return self


class CalcRuleDocument(StrictModel):
    """A calculated series `calc.<name>`, from the series of its inputs."""

    name: Name = Field(
        description="Unique name. The key of the calculated series is `calc.<name>`.",
        examples=["error-ratio"],
    )
    description: Description = ""
    inputs: Annotated[dict[InputName, CalcInput], Field(min_length=1, max_length=16)] = Field(
        description="The inputs, by the names that `value` uses.",
        examples=[{"errors": {"key": "http.errors", "each": "rate", "over": "5m"}}],
    )
    by: Annotated[tuple[GroupLabel, ...], Field(strict=False, max_length=8)] = Field(
        (OWNER,),
        description="What distinguishes the results: `owner`, and names of labels or dimensions. An empty list gives "
        "one result.",
        examples=[["owner", "device"]],
    )
    every: Annotated[Duration, AfterValidator(_check_every)] = Field(
        description="Length of the windows. They end at whole multiples since 1970 UTC.", examples=["1m"]
    )
    value: Annotated[str, Field(max_length=MAX_CONDITION_LENGTH)] = Field(
        description="CEL expression over the inputs and `now`, the end of the window in seconds since 1970. All are "
        "doubles. It gives a number, or true or false.",
        examples=["errors / total"],
    )
    owner: Owner | None = Field(
        None,
        description="Owner of the results if `by` lacks `owner`; by default the name.",
        examples=["shop"],
    )
    owners: Annotated[tuple[Owner, ...], Field(strict=False, max_length=10_000)] = Field(
        (),
        description="Owners that always have a group, also without a series; only with `by: [owner]`.",
        examples=[["db-1", "db-2"]],
    )
    enabled: bool = Field(True, description="false calculates nothing.", examples=[True])

    @property
    def key(self) -> str:
        return CALC_PREFIX + self.name

    def over(self, name: str) -> timedelta:
        """The length of the range of an input."""
        return self.inputs[name].over or self.every

    @property
    def sources(self) -> frozenset[str]:
        """The names of the calc_rules that this one reads."""
        keys = (given.key for given in self.inputs.values())
        return frozenset(key.removeprefix(CALC_PREFIX) for key in keys if key.startswith(CALC_PREFIX))

    @model_validator(mode="after")
    def _has_no_key_without_effect(self) -> Self:
        if "now" in self.inputs:
            raise document_error("has an input 'now', which is the end of the window: rename it", "inputs")
        if len(set(self.by)) < len(self.by):
            raise document_error("names something twice in 'by': name each once", "by")
        if self.owner is not None and OWNER in self.by:
            raise document_error("has 'owner', and the owner is in 'by': keep one", "owner")
        if self.owners and self.by != (OWNER,):
            raise document_error("has 'owners' without 'by: [owner]'", "owners")
        for name, given in self.inputs.items():
            longest = self.over(name) + given.offset
            if longest > 2 * MAX_RANGE:
                text = f"reads {format_duration(longest)} back in '{name}': shorten 'over' or 'offset'"
                raise document_error(text, "inputs")
            if given.aggregate.name == "histogram_quantile" and BUCKET_LABEL in self.by:
                raise document_error(f"has '{BUCKET_LABEL}' in 'by' and a histogram: remove it", "by")
        return self
