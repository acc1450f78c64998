"""What was said and done in the last turns, as evidence for whoever looks at them (pure).

Long texts lose their middle, never their end, or the cut itself would look like a contradiction.
Of promises and tool calls the newest are kept; how many older ones there were is said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conversations import file_blocks
from conversations.constants import SUMMARY_MAX_CHARS
from conversations.models import Message, ToolCall
from mira_site.prompts import in_quotes, quoted

COMMITMENTS_MAX = 5  # spec cognition 2.2
ACTIVITIES_MAX = 8  # spec cognition 2.2
ACTIVITY_CHARS = 180  # of an input or a result; spec cognition 2.2
MESSAGE_CHARS = 500  # of an older message; spec cognition 2.2
LATEST_CHARS = 2_000  # of the last four messages
LATEST_MESSAGES = 4

# A promise in the first person, up to the end of its sentence. "Let me know" is none.
_PROMISE = re.compile(
    r"(?<!\w)(?:I['’]ll|I will|let me(?! know)|I['’]m going to|I am going to"
    r"|ich werde|je vais|voy a)(?!\w)[^.!?\n]{3,200}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """`transcript` and `ledger` are elements, escaped; `names` says which message is m1, m2, …"""

    transcript: str
    ledger: str
    names: dict[str, Message]


def evidence(messages: Sequence[Message]) -> Evidence:
    """Of these messages, oldest first; `attachments` and `turn__tool_calls` are prefetched."""
    names = {f"m{place}": message for place, message in enumerate(messages, start=1)}
    lines = []
    for place, (name, message) in enumerate(names.items()):
        most = LATEST_CHARS if len(messages) - place <= LATEST_MESSAGES else MESSAGE_CHARS
        lines.append(
            f'<said id="{name}" by="{by(message)}">{quoted(cut(message.text, most))}'
            f"{_sent(message)}</said>"
        )
    return Evidence(transcript="\n".join(lines), ledger=_ledger(names), names=names)


def _sent(message: Message) -> str:
    """The files that came with it, by name: nothing of what is in them."""
    return "".join(
        f"<sent_a_file>{quoted(name)}</sent_a_file>" for name in file_blocks.names(message)
    )


def cut(text: str, most: int) -> str:
    """The text in one line of at most `most` characters and a mark; its middle goes."""
    line = flat(text)
    if len(line) <= most:
        return line
    head = most * 2 // 3
    return f"{line[:head]} […] {line[-(most - head) :]}"


def flat(text: str) -> str:
    """The text in one line."""
    return " ".join(text.split())


def without_middle(lines: Iterable[str]) -> str:
    """The lines of a transcript together. A very long one loses its middle and says so."""
    whole = "\n".join(lines)
    if len(whole) <= SUMMARY_MAX_CHARS:
        return whole
    half = SUMMARY_MAX_CHARS // 2
    return f'{whole[:half]}\n<left_out reason="too long"/>\n{whole[-half:]}'


def promises(text: str) -> list[str]:
    """What the text promises to do, each once."""
    found = (flat(match.group()) for match in _PROMISE.finditer(text))
    return list(dict.fromkeys(found))


def _ledger(names: dict[str, Message]) -> str:
    made: list[str] = []
    done: list[str] = []
    for name, message in names.items():
        if message.role == Message.Role.USER:
            continue
        calls = list(message.turn.tool_calls.all()) if message.turn else []
        used = ", ".join(dict.fromkeys(call.name for call in calls)) or "none observed"
        made += [
            f'<promise in="{name}" tools_in_that_turn="{in_quotes(used)}">{quoted(one)}</promise>'
            for one in promises(message.text)
        ]
        done += [_activity(name, call) for call in calls]
    return "\n".join(
        [*_newest("promises", made, COMMITMENTS_MAX), *_newest("tools", done, ACTIVITIES_MAX)]
    )


def _newest(element: str, lines: Sequence[str], most: int) -> list[str]:
    left_out = max(0, len(lines) - most)
    opening = f'<{element} older_left_out="{left_out}">' if left_out else f"<{element}>"
    return [opening, *(lines[-most:] or ["none observed"]), f"</{element}>"]


def _activity(name: str, call: ToolCall) -> str:
    given = cut(json.dumps(call.input, sort_keys=True, ensure_ascii=False), ACTIVITY_CHARS)
    result = cut(call.result, ACTIVITY_CHARS) or "nothing"
    outcome = "failed" if call.is_error else "done"
    return (
        f'<call in="{name}" tool="{in_quotes(call.name)}" outcome="{outcome}">'
        f"<input>{quoted(given)}</input><result>{quoted(result)}</result></call>"
    )


def by(message: Message) -> str:
    """Who said it, as prompts call them."""
    return "person" if message.role == Message.Role.USER else "MIRA"
