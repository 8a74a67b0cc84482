"""The words of a time, brought to one spelling before the grammar reads them.

Guarantee: `plain_words` changes spellings and never a meaning: `two hours from now` is `in 2 hours`,
`9 p.m.` is `9 pm`, `nine o'clock` is `9`. Everything else stays as it is, and the grammar of
`natural_time` accepts or rejects it.
"""

import re

_ONES = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBERS = {name: number for number, name in enumerate(_ONES, 1)} | {
    name: 10 * number for number, name in enumerate(_TENS, 2)
}
_NUMBER_WORD = re.compile(
    rf"\b(?:({'|'.join(_TENS)})(?:[ -]({'|'.join(_ONES[:9])}))?|({'|'.join(reversed(_ONES))}))\b"
)
_MERIDIEM = re.compile(r"(?<=[0-9 ])([ap])\.m\.?(?= |,|$)")
_OCLOCK = re.compile(r"(?<=[0-9]) o'?clock\b")
_FROM_NOW = " from now"


def plain_words(text: str) -> str:
    words = " ".join(text.lower().split())
    words = _NUMBER_WORD.sub(_digits, words)
    words = _MERIDIEM.sub(lambda match: f"{match[1]}m", words)
    words = _OCLOCK.sub("", words).replace("a quarter ", "quarter ")
    if words.endswith(_FROM_NOW):
        words = f"in {words.removesuffix(_FROM_NOW).removeprefix('in ')}"
    return words


def _digits(match: re.Match[str]) -> str:
    return str(sum(_NUMBERS[word] for word in match.groups() if word))
