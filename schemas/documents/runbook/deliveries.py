"""Steps that send a message: to a target of their own, or through a channel.

Texts that a step does not give have defaults about the alarm or the event of the run.
"""

from typing import Annotated

from pydantic import Field

from schemas.documents.strict_model import StrictModel
from schemas.documents.targets import AppriseTarget, EmailTarget, SlackTarget, WebhookTarget
from schemas.values.names import Name
from schemas.values.template_text import HtmlTemplate, JsonTemplate, ListTemplate, TextTemplate

_TEXT = "Text of the message; `{{ ... }}` is filled from the event."
_SUBJECT = "Subject, on one line."
_HTML = "Text of the message as HTML; values are escaped."
_BLOCKS = "Slack blocks (Block Kit), instead of the text."
_PAYLOAD = "JSON object to send; `{{ ... }}` in its texts is filled from the event."

Subject = Annotated[TextTemplate, Field(min_length=1)]
Text = Annotated[TextTemplate, Field(min_length=1)]
Blocks = Annotated[ListTemplate, Field(min_length=1, max_length=50)]


class WebhookStep(WebhookTarget):
    """Sends JSON over HTTP, signed (Standard Webhooks) if `secrets` is set."""

    payload: JsonTemplate | None = Field(None, description=_PAYLOAD, examples=[{"alarm": "{{ alarm.id }}"}])


class SlackStep(SlackTarget):
    """Posts to a Slack incoming webhook."""

    text: Text | None = Field(None, description=_TEXT, examples=["{{ alarm.message }}"])
    blocks: Blocks | None = Field(
        None,
        description=_BLOCKS,
        examples=[[{"type": "section", "text": {"type": "mrkdwn", "text": "*{{ owner }}*"}}]],
    )


class EmailStep(EmailTarget):
    """Sends mail, as text and HTML."""

    subject: Subject | None = Field(None, description=_SUBJECT, examples=["{{ rule }} of {{ owner }}"])
    text: Text | None = Field(None, description=_TEXT, examples=["{{ alarm.message }}"])
    html: HtmlTemplate | None = Field(None, description=_HTML, examples=["<b>{{ alarm.message }}</b>"])


class AppriseStep(AppriseTarget):
    """Sends to any other service, by its apprise url."""

    subject: Subject | None = Field(None, description=_SUBJECT, examples=["{{ rule }} of {{ owner }}"])
    text: Text | None = Field(None, description=_TEXT, examples=["{{ alarm.message }}"])


class ChannelStep(StrictModel):
    """Sends through a channel, with its document at the time of the step."""

    name: Name = Field(description="Name of the channel.", examples=["ops"])
    subject: Subject | None = Field(None, description=_SUBJECT, examples=["{{ rule }} of {{ owner }}"])
    text: Text | None = Field(None, description=_TEXT, examples=["{{ alarm.message }}"])
    html: HtmlTemplate | None = Field(None, description=_HTML, examples=["<b>{{ alarm.message }}</b>"])
    blocks: Blocks | None = Field(
        None,
        description=_BLOCKS,
        examples=[[{"type": "section", "text": {"type": "mrkdwn", "text": "*{{ owner }}*"}}]],
    )
    payload: JsonTemplate | None = Field(None, description=_PAYLOAD, examples=[{"alarm": "{{ alarm.id }}"}])


Delivery = WebhookStep | SlackStep | EmailStep | AppriseStep | ChannelStep
