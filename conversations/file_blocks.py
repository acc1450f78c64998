"""Files of messages as a model sees them: pictures and PDFs themselves, of the rest the text.

What is in a file was written by others, even where the person chose it: it goes in escaped and
labelled. The same message always makes the same blocks, so that prompts stay cached.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

from conversations.constants import FILE_BYTES_PER_TOKEN, FILE_FIRST_CHARS, FILES_BUDGET_TOKENS
from conversations.files import CSV, DOCX, IMAGES, JSON, PDF, XLSX
from conversations.models import Attachment, AttachmentBody, Message
from memory.types import Trust
from mira_site import tokens
from mira_site.llm import types as llm
from mira_site.prompts import in_quotes, quoted

FRAME_TOKENS = 60  # of the element around a file
KINDS = {PDF: "PDF", CSV: "CSV table", JSON: "JSON", DOCX: "Word document", XLSX: "Excel workbook"}

FORGOTTEN = "the person had what it tells forgotten"
TOO_MUCH = "too large to be shown beside the others"
NO_TEXT = "no text can be read in it"
NOT_SHOWN = "[The file cannot be shown to you here. Say so if it matters.]"


def load(messages: Sequence[Message]) -> None:
    """Read what is in the files of these messages, in one query a kind. Expects `attachments`."""
    shown = [row for message in messages for row, why in _shown(message) if not why]
    for whole, unread in ((True, "text"), (False, "content")):
        rows = {row.pk: row for row in shown if row.is_shown_whole == whole}
        if rows:
            user_id = next(iter(rows.values())).user_id
            bodies = AttachmentBody.objects.for_user(user_id).filter(attachment__in=rows)
            for body in bodies.defer(unread):
                rows[body.attachment_id].body = body


def blocks(message: Message) -> tuple[llm.Block, ...]:
    """The files of a message in order, each with its label. Expects `load`."""
    return tuple(block for row, why in _shown(message) for block in _blocks(row, why))


def cost_tokens(message: Message) -> int:
    """What the files of a message cost in a prompt."""
    return sum(_frame(row) + (0 if why else _cost(row)) for row, why in _shown(message))


def names(message: Message) -> list[str]:
    return [row.name for row in _attached(message)]


def mention(message: Message) -> str:
    """That files came with the message, as a quoted line: memory takes it for something read."""
    told = ", ".join(f"“{row.name}” ({kind(row)})" for row in _attached(message))
    return f"> [Sent with it: {told}]" if told else ""


def first_lines(message: Message) -> str:
    """The files as a summary is told of them: name, kind, and how their text begins."""
    return "\n".join(
        f'<attached name="{in_quotes(row.name)}" type="{kind(row)}">{_beginning(row)}</attached>'
        for row in _attached(message)
    )


def kind(row: Attachment) -> str:
    """What it is, in a word or two."""
    if row.media_type in IMAGES:
        return "picture"
    name = KINDS.get(row.media_type, "text file")
    return f"{name}, {row.pages} pages" if row.pages and row.pages > 1 else name


def read_class(messages: Sequence[Message]) -> Trust | None:
    """The trust class of what a model reads in the files of these messages."""
    is_read = any(not why for message in messages for _, why in _shown(message))
    return Trust.OUTSIDE if is_read else None


def without(request: llm.ModelRequest) -> llm.ModelRequest | None:
    """The request with a note in place of each picture and PDF; None if it holds none."""
    messages = [_bare(message) for message in request.messages]
    if all(one is other for one, other in zip(messages, request.messages, strict=True)):
        return None
    return replace(request, messages=messages)


def _bare(message: llm.ChatMessage) -> llm.ChatMessage:
    content = message.content
    if isinstance(content, str) or not any(map(_is_file, content)):
        return message
    bare = tuple(llm.Text(text=NOT_SHOWN) if _is_file(block) else block for block in content)
    return replace(message, content=bare)


def _is_file(block: llm.Block) -> bool:
    return isinstance(block, llm.Image | llm.Document)


def _attached(message: Message) -> list[Attachment]:
    """Only what the person said comes with files, once it is stored."""
    may_have = message.role == Message.Role.USER and not message._state.adding
    may_have = may_have and message.has_files is not False
    return list(message.attachments.all()) if may_have else []


def _shown(message: Message) -> Iterator[tuple[Attachment, str]]:
    """Each file, and why it is not shown; "" where it is. The budget of a message is its own."""
    spent = 0
    for row in _attached(message):
        cost = _cost(row)
        if row.forgotten_at is not None:
            yield row, FORGOTTEN
        elif not row.is_shown_whole and not row.text_tokens:
            yield row, NO_TEXT
        elif spent + cost > FILES_BUDGET_TOKENS:
            yield row, TOO_MUCH
        else:
            spent += cost
            yield row, ""


def _cost(row: Attachment) -> int:
    """Tokens, or more where the bytes weigh more in a request than the tokens do."""
    if not row.is_shown_whole:
        return row.text_tokens
    by_content = (
        tokens.image(row.width, row.height)
        if row.width and row.height
        else tokens.pdf(row.pages or 1)
    )
    return max(by_content, ceil(row.size / FILE_BYTES_PER_TOKEN))


def _frame(row: Attachment) -> int:
    return FRAME_TOKENS + tokens.estimate(row.name)


def _blocks(row: Attachment, why_not: str) -> Iterator[llm.Block]:
    label = f'name="{in_quotes(row.name)}" type="{row.media_type}"'
    if row.pages:
        label += f' pages="{row.pages}"'
    if why_not:
        yield llm.Text(text=f'<attachment {label} not_shown="{why_not}"/>')
    elif row.is_shown_whole:
        yield llm.Text(text=f"<attachment {label}/>")
        yield _file(row)
    else:
        if row.is_text_cut:
            label += ' cut="only the beginning is shown"'
        yield llm.Text(text=f"<attachment {label}>\n{quoted(row.body.text)}\n</attachment>")


def _file(row: Attachment) -> llm.Block:
    data = b64encode(row.body.content).decode("ascii")
    if row.media_type in IMAGES:
        return llm.Image(media_type=row.media_type, base64=data)
    return llm.Document(base64=data, title=row.name)


def _beginning(row: Attachment) -> str:
    if row.forgotten_at is not None or not row.text_tokens:
        return ""
    text = " ".join(row.body.text[: 2 * FILE_FIRST_CHARS].split())
    return quoted(text[:FILE_FIRST_CHARS])
