"""Live compaction: one rolling brief, the last ten turns raw, and never a worse one."""

from __future__ import annotations

import pytest

from conversations import compaction, selectors, services
from conversations.models import CompactionBrief, Message, Segment
from tests.conversations.talking import put_to_rest, say, tell

BRIEF = {
    "state": "The person had asked where the boat lies, and I was about to tell the berth.",
    "preferences": ["wants berth numbers in figures"],
    "decisions": ["the boat is sold in May 2027"],
    "references": ["berth 14 in Piran", "phone 040 555 12"],
    "open_threads": ["who buys the trailer"],
    "synopsis": "We had spoken at length about the boat, its berth in Piran, the sale planned for "
    "May 2027 and the trailer that nobody wanted; the person had described all of it in detail.",
}


@pytest.fixture
def long_talk(me, fake_anthropic):
    """Fourteen answered turns."""
    fake_anthropic.on("reply").says("I see, the boat.")
    return [say(me, f"Number {number}: the boat lies in Piran.") for number in range(14)]


def segment_of(turns) -> Segment:
    return turns[-1].segment


def positions(messages) -> list[str]:
    return [message.text.split(":")[0] for message in messages if message.role == "user"]


def test_all_but_the_last_ten_turns_are_told_in_short(me, long_talk, fake_anthropic):
    fake_anthropic.on("compaction").answers(BRIEF)
    brief = compaction.compact(me, segment_of(long_talk).pk)
    assert brief is not None and brief.count == 1
    for text in ("berth 14 in Piran", "who buys the trailer", "Still open"):
        assert text in brief.text
    asked = tell(me, "Number 14: and now?")
    assert positions(selectors.history(asked, selectors.brief(asked))) == [
        f"Number {number}" for number in range(4, 15)
    ]
    prompt = fake_anthropic.seen("compaction")[0].prompt
    assert "Number 3:" in prompt and "Number 4:" not in prompt
    assert Message.objects.for_user(me).count() == 29


def test_the_next_prompt_carries_the_brief_and_the_raw_turns(me, long_talk, fake_anthropic):
    fake_anthropic.on("compaction").answers(BRIEF)
    compaction.compact(me, segment_of(long_talk).pk)
    say(me, "Number 14: and now?")
    seen = fake_anthropic.seen("reply")[-1]
    assert "<brief from=" in seen.system and "berth 14 in Piran" in seen.system
    assert "Number 4:" in seen.prompt and "Number 3:" not in seen.prompt


def test_it_rolls_on_from_the_brief_before(me, long_talk, fake_anthropic):
    fake_anthropic.on("compaction").answers(BRIEF, times=2)
    compaction.compact(me, segment_of(long_talk).pk)
    assert compaction.compact(me, segment_of(long_talk).pk) is None, "nothing new to tell"
    for number in range(14, 17):
        say(me, f"Number {number}: more of it.")
    brief = compaction.compact(me, segment_of(long_talk).pk)
    assert brief is not None and brief.count == 2
    prompt = fake_anthropic.seen("compaction")[1].prompt
    assert "berth 14 in Piran" in prompt.split("</before>")[0]
    assert "Number 4:" in prompt and "Number 3:" not in prompt
    assert CompactionBrief.objects.for_user(me).count() == 1


def test_ten_turns_are_too_few(me, fake_anthropic):
    fake_anthropic.on("reply").says("Yes.")
    turns = [say(me, f"Hello {number}") for number in range(10)]
    assert compaction.compact(me, segment_of(turns).pk) is None
    assert not fake_anthropic.seen("compaction")


@pytest.mark.parametrize("bad", ["empty", "cut off", "too short", "refused", "away"])
def test_a_bad_brief_never_replaces_anything(me, long_talk, fake_anthropic, bad):
    fake_anthropic.on("compaction").answers(BRIEF)
    before = compaction.compact(me, segment_of(long_talk).pk)
    for number in range(14, 17):
        say(me, f"Number {number}: more of it.")
    script = fake_anthropic.on("compaction")
    if bad == "empty":
        script.says("", times=2)
    elif bad == "cut off":
        script.says('{"state": "It was', times=2, stop_reason="max_tokens")
    elif bad == "too short":
        script.answers({"state": "We had talked about it.", "synopsis": "x" * 41})
    elif bad == "refused":
        script.fails(400)
    else:
        script.fails(529, times=9)
    assert compaction.compact(me, segment_of(long_talk).pk) is None
    assert CompactionBrief.objects.for_user(me).get().text == before.text


def test_a_message_deleted_meanwhile_is_not_told(me, long_talk, fake_anthropic, monkeypatch):
    fake_anthropic.on("compaction").answers(BRIEF)
    ask = compaction.COMPACTION.ask
    doomed = Message.objects.for_user(me).filter(role="user").order_by("position").first()

    def ask_and_delete(self, *args, **kwargs):
        answer = ask(*args, **kwargs)
        services.delete_message(
            user=me, message_id=doomed.pk, what_came_of_it="forget", with_answer=True
        )
        return answer

    monkeypatch.setattr(type(compaction.COMPACTION), "ask", ask_and_delete)
    assert compaction.compact(me, segment_of(long_talk).pk) is None
    assert not CompactionBrief.objects.for_user(me).exists()


def test_collapse_ends_it_and_a_late_one_writes_nothing(me, long_talk, fake_anthropic):
    fake_anthropic.on("compaction").answers(BRIEF, times=2)
    segment = segment_of(long_talk)
    assert compaction.compact(me, segment.pk) is not None
    put_to_rest(me)
    assert not CompactionBrief.objects.for_user(me).exists()
    assert compaction.compact(me, segment.pk) is None


def test_it_is_due_from_forty_thousand_counted_tokens(long_talk):
    turn = long_talk[-1]
    assert not compaction.is_due(turn, 39_999)
    assert compaction.is_due(turn, 40_000)
    turn.is_off_record = True
    assert not compaction.is_due(turn, 90_000)


def test_what_the_provider_counted_is_kept_beside_the_estimate(me, long_talk):
    context = long_talk[-1].composed
    assert context.counted_tokens == selectors.prompt_tokens(long_talk[-1]) > 0
    assert context.tokens > 0


def test_a_few_short_turns_are_not_worth_a_changed_prefix(me, long_talk, fake_anthropic):
    fake_anthropic.on("compaction").answers(BRIEF, times=2)
    segment = segment_of(long_talk)
    brief = compaction.compact(me, segment.pk)
    for number in (14, 15):
        say(me, f"Number {number}: more of it.")
    assert compaction.compact(me, segment.pk) is None
    assert len(fake_anthropic.seen("compaction")) == 1
    long = Message(user=me, role="user", text="much more of it " * 1_700)
    found = compaction.Slice(segment=segment, before=brief, messages=(long,))
    assert compaction.is_worth_it(found), "one long turn is"
    assert compaction.compact(me, segment.pk, raw_turns=2), "and so is what the model refuses"


def test_after_a_refused_brief_it_is_left_alone_for_a_while(me, long_talk, fake_anthropic):
    fake_anthropic.on("compaction").answers(
        {"state": "We had talked about it.", "synopsis": "x" * 41}
    )
    for _ in range(2):
        assert compaction.compact(me, segment_of(long_talk).pk) is None
    assert len(fake_anthropic.seen("compaction")) == 1


def test_very_many_short_turns_are_due_too(me, long_talk, monkeypatch):
    """A prompt reads so many messages and no more: what is older would be told nowhere."""
    turn = long_talk[-1]
    monkeypatch.setattr(compaction, "COMPACTION_MESSAGES", 28)
    assert compaction.is_due(turn, 10)
    monkeypatch.setattr(compaction, "COMPACTION_MESSAGES", 29)
    assert not compaction.is_due(turn, 10)


def test_one_at_a_time(me, long_talk, fake_anthropic):
    compaction.cache.add(f"compaction:{segment_of(long_talk).pk}", 1, timeout=60)
    assert compaction.compact(me, segment_of(long_talk).pk) is None
    assert not fake_anthropic.seen("compaction")
