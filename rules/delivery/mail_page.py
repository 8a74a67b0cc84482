"""The HTML of mails: one card with a coloured border, a badge, texts, tables and links. Pure.

Guarantee: every value is escaped, and a link has the http or https url that it was given. The page
needs no image, font or script. It has a light and a dark form; the mail program chooses.

Why inline styles: many mail programs drop style sheets. Only the dark form is in one, because a
media query cannot be inline; a program that drops it shows the light form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_FONT = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
_TEXT = "color:#111827"
_DIM = "color:#6b7280"
_DARK = (
    "@media (prefers-color-scheme:dark){"
    ".page{background:#0b1120!important}"
    ".card{background:#1f2937!important;border-color:#374151!important}"
    ".text{color:#f3f4f6!important}.dim{color:#9ca3af!important}"
    ".line{border-color:#374151!important}.link{color:#93c5fd!important}"
    "}"
)


def page(colour: str, badge: str, heading: str, parts: Sequence[str]) -> str:
    """A whole document. `parts` are HTML, made by the functions below."""
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="supported-color-schemes" content="light dark">\n'
        f"<title>{escape(heading)}</title>\n<style>{_DARK}</style>\n</head>\n"
        '<body class="page" style="margin:0;padding:0;background:#f3f4f6">\n'
        '<table role="presentation" class="page" width="100%" cellpadding="0" cellspacing="0" '
        'style="background:#f3f4f6"><tr><td align="center" style="padding:24px 12px">\n'
        '<table role="presentation" class="card" width="100%" cellpadding="0" cellspacing="0" '
        'style="max-width:640px;background:#ffffff;border:1px solid #e5e7eb;border-radius:8px">\n'
        f'<tr><td style="height:6px;line-height:6px;font-size:0;background:{colour};'
        'border-radius:7px 7px 0 0">&nbsp;</td></tr>\n'
        f'<tr><td class="text" align="left" style="padding:20px 24px 24px;{_FONT};font-size:14px;line-height:1.5;'
        f'{_TEXT}">\n'
        f'<span style="display:inline-block;padding:2px 10px;border-radius:10px;background:{colour};'
        f'color:#ffffff;font-size:12px;font-weight:600;letter-spacing:.03em">{escape(badge)}</span>\n'
        f'<h1 class="text" style="margin:10px 0 0;font-size:20px;line-height:1.3;{_TEXT}">{escape(heading)}</h1>\n'
        f"{body}\n</td></tr>\n</table>\n</td></tr></table>\n</body>\n</html>\n"
    )


def paragraph(text: str | None, *, dim: bool = False) -> str:
    if not text:
        return ""
    name, colour = ("dim", _DIM) if dim else ("text", _TEXT)
    return f'<p class="{name}" style="margin:12px 0 0;white-space:pre-line;{colour}">{escape(text)}</p>'


def subheading(text: str) -> str:
    return f'<h2 class="text" style="margin:20px 0 4px;font-size:15px;{_TEXT}">{escape(text)}</h2>'


def fact_table(rows: Mapping[str, str]) -> str:
    """Titles and values, one pair on a line."""
    if not rows:
        return ""
    lines = "\n".join(
        f'<tr><td class="dim" style="padding:3px 20px 3px 0;vertical-align:top;white-space:nowrap;{_DIM}">'
        f'{escape(title)}</td><td class="text" style="padding:3px 0;overflow-wrap:anywhere;{_TEXT}">'
        f"{escape(value)}</td></tr>"
        for title, value in rows.items()
    )
    return (
        '<table role="presentation" cellpadding="0" cellspacing="0" style="margin-top:14px;font-size:14px">\n'
        f"{lines}\n</table>"
    )


def list_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a header and one line for each row."""
    if not rows:
        return ""
    header = "".join(
        f'<th class="dim line" align="left" style="padding:4px 12px 4px 0;border-bottom:1px solid #e5e7eb;'
        f'font-weight:500;font-size:12px;{_DIM}">{escape(title)}</th>'
        for title in titles
    )
    lines = "\n".join(
        "<tr>"
        + "".join(
            f'<td class="text line" style="padding:5px 12px 5px 0;border-bottom:1px solid #e5e7eb;'
            f'vertical-align:top;overflow-wrap:break-word;{_TEXT}">{escape(cell)}</td>'
            for cell in row
        )
        + "</tr>"
        for row in rows
    )
    return (
        '<table cellpadding="0" cellspacing="0" width="100%" '
        f'style="margin-top:10px;border-collapse:collapse;font-size:13px">\n<tr>{header}</tr>\n{lines}\n</table>'
    )


def links(urls: Mapping[str, str]) -> str:
    if not urls:
        return ""
    anchors = " &nbsp;·&nbsp; ".join(
        f'<a class="link" href="{escape(url)}" style="color:#1d4ed8;font-weight:600;text-decoration:none">'
        f"{escape(title)}</a>"
        for title, url in urls.items()
    )
    return f'<p class="text" style="margin:18px 0 0;{_TEXT}">{anchors}</p>'
