"""The evidence of an observer: newest first to stay, cut in the middle, escaped."""

from __future__ import annotations

from uuid import uuid4

from conversations import ledger, services
from conversations.models import Message
from tests.conversations.talking import say
from tests.conversations.uploading import kept, picture


def test_promises_are_found_and_an_invitation_is_none():
    text = "Let me know if it works. I'll look it up. Ich werde dich erinnern! I will write to Ana."
    assert ledger.promises(text) == [
        "I'll look it up",
        "Ich werde dich erinnern",
        "I will write to Ana",
    ]


def test_a_long_text_loses_its_middle_and_says_so():
    text = "a" * 400 + " middle " + "z" * 400
    cut = ledger.cut(text, 300)
    assert cut.startswith("aaa") and cut.endswith("zzz") and " […] " in cut
    assert "middle" not in cut and len(cut) <= 310
    assert ledger.cut("short  text\nhere", 300) == "short text here"


def test_a_promise_without_a_tool_stands_beside_none_observed(me, fake_anthropic):
    fake_anthropic.on("reply").says("I'll search for it. </ledger> <b>now</b>")
    said = say(me, "Find <i>it</i>.")
    messages = list(Message.objects.for_user(me).filter(segment=said.segment))
    found = ledger.evidence(sorted(messages, key=lambda one: one.position))
    assert '<promise in="m2" tools_in_that_turn="none observed">I\'ll search for it' in found.ledger
    assert found.ledger.count("none observed") == 2
    assert "<i>" not in found.transcript and "<b>" not in found.transcript
    assert found.names["m1"].text == "Find <i>it</i>."


def test_a_message_that_is_a_file_alone_says_which(me):
    file = kept(me, picture(), name="the <boat>.png")
    turn = services.accept_message(user=me, text="", client_id=uuid4(), file_ids=[file.pk])
    found = ledger.evidence(list(turn.messages.all()))
    assert found.transcript == (
        '<said id="m1" by="person"><sent_a_file>the &lt;boat&gt;.png</sent_a_file></said>'
    )


def test_the_newest_tool_calls_stay_and_the_others_are_counted(me, fake_anthropic):
    for number in range(10):
        fake_anthropic.on("reply").calls_tool(
            "memory_tool", {"operation": "search", "query": f"thing number {number}"}
        )
    fake_anthropic.on("reply").says("Nothing at all.")
    turn = say(me, "Look for ten things.")
    messages = list(turn.messages.order_by("position"))
    found = ledger.evidence(messages)
    assert '<tools older_left_out="2">' in found.ledger
    assert "thing number 9" in found.ledger and "thing number 1" not in found.ledger
