"""States, counts and reasons in plain words, as the person reads them (pure)."""

from __future__ import annotations

from collections.abc import Mapping

TRUST = {
    4: "You said it yourself.",
    3: "I concluded it from what you said.",
    2: "A tool told it.",
    1: "I read it in a text that is not yours.",
}
STAKES = {
    0: "A small thing. It fades when it is not needed.",
    1: "An ordinary thing. It fades if it is not needed for long.",
    2: "It would cost you if I had forgotten it, so it fades last.",
}
ARCHIVED_BECAUSE = {
    "by hand": "you put it away",
    "faded": "it was not needed for long and faded",
    "expired": "it was over",
    "aged": "it was a note for its day, and that was long ago",
    "merged": "it became part of another memory",
    "merge undone": "it was taken apart again",
    "wrong": "you said it was wrong",
    "settled against": "you kept another one in its place",
    "message edited": "you changed the message it came from",
}
_COUNTED = (
    ("memories", "memory", "memories"),
    ("merged", "merged memory taken apart", "merged memories taken apart"),
    ("sources", "note of where it was said", "notes of where it was said"),
    ("links", "link", "links"),
    ("mentions", "mention of a name", "mentions of names"),
    ("entities", "name that nothing else mentions", "names that nothing else mentions"),
    ("uses", "trace of its use", "traces of its use"),
    ("revisions", "earlier wording", "earlier wordings"),
    ("spans", "passage quoted elsewhere", "passages quoted elsewhere"),
    ("notes", "note", "notes"),
    ("reasons", "reason given elsewhere", "reasons given elsewhere"),
    ("surfaced", "answer it had come up for", "answers it had come up for"),
    ("summaries", "summary written anew", "summaries written anew"),
    ("passages", "passage of a message left out from now on", "passages left out from now on"),
    ("tool_calls", "result of a tool", "results of tools"),
)


def counted(counts: Mapping[str, int]) -> list[str]:
    """A receipt's counts: `1 memory`, `3 links`. What was not touched is left out."""
    return [
        f"{counts[name]} {one if counts[name] == 1 else many}"
        for name, one, many in _COUNTED
        if counts.get(name)
    ]
