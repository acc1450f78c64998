"""Two hundred turns over twelve segments, with everything that can happen on the way."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db.models import Sum

from conversations import services, sweep, tasks, threads
from conversations.models import CompactionBrief, Message, Observation, Segment, Turn
from mira_site import isolation
from mira_site.llm.models import ModelCall

SEGMENTS = 12
TURNS = [17] * 8 + [16] * 4  # 200
START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
COMPACTED, FAST_AWAY, ALL_AWAY, KILLED = 3, 5, 7, 9  # segments in which it happens
LONG = "The harbour of Piran was described at great length, with every boat in it. " * 110
ADVICE = {
    "action": "coaching",
    "failure": "It repeats itself.",
    "evidence": ["m2"],
    "guidance": "Say something new.",
}
BRIEF = {
    "state": "I was hearing about the harbour of Piran, boat after boat.",
    "decisions": ["the blue boat was chosen on 5 March 2026"],
    "references": ["berth 14", "the boats Merula, Alka and Tinca"],
    "synopsis": "The person had described the harbour of Piran and every boat in it, one after "
    "the other, and had asked me to keep the names in mind. " * 10,
}


def summary(number: int) -> dict[str, object]:
    return {
        "trace": f"I heard part {number} of the story of the harbour and kept it in mind.",
        "precis": f"Part {number} of the harbour. It went on.",
        "title": f"Harbour, part {number}",
        "complexity": 1,
    }


@pytest.fixture
def script(fake_anthropic):
    fake_anthropic.on("reply").says("I see. The harbour it is, then.")
    fake_anthropic.on("subcortical").answers({"phrases": ["harbour of Piran"]})
    fake_anthropic.on("observation").answers(ADVICE)
    fake_anthropic.on("compaction").answers(BRIEF)
    fake_anthropic.on("extraction").answers(
        {"memories": [{"text": "Alice's boat Merula lies at berth 14 in Piran.", "messages": [1]}]},
        times=1,
    )
    fake_anthropic.on("extraction").answers({"memories": []})
    return fake_anthropic


class Life:
    """Sends messages and lets workers answer them, on a clock of its own."""

    def __init__(self, me, fake_anthropic) -> None:
        self.me, self.server, self.now = me, fake_anthropic, START
        self.sent: list[str] = []

    def say(self, text: str, *, answered: bool = True) -> Turn:
        self.now += timedelta(minutes=2)
        with time_machine.travel(self.now, tick=True):
            turn = services.accept_message(user=self.me, text=text, client_id=uuid.uuid4())
            if answered:
                tasks.run_turn(str(self.me.pk), str(turn.pk))
        self.sent.append(text)
        return turn

    def be_killed(self, text: str) -> Turn:
        """A worker takes the turn and dies; the sweep finds it, and the person tries again."""
        turn = self.say(text, answered=False)
        with time_machine.travel(self.now, tick=True):
            assert threads.claim_turn(self.me, turn.pk, at=self.now) is not None
        self.now += timedelta(minutes=2)
        with time_machine.travel(self.now, tick=True):
            with isolation.all_users("test of the sweep", routine=True):
                sweep.interrupt_lost(at=self.now)
            turn.refresh_from_db()
            assert turn.status == Turn.Status.INTERRUPTED
            services.retry_turn(user=self.me, turn_id=turn.pk)
            tasks.run_turn(str(self.me.pk), str(turn.pk))
        return turn

    def go_quiet(self) -> None:
        self.now += timedelta(hours=3)
        with time_machine.travel(self.now, tick=True), isolation.all_users("test", routine=True):
            tasks.collapse_due_segments()
        self.now += timedelta(hours=20)


@pytest.mark.timeout(600)  # half a minute on a quiet machine
def test_two_hundred_turns_over_twelve_segments(me, script, settings):
    life = _lived(me, script, settings)
    _all_is_there(me, life, script)
    _four_fifths_come_from_the_cache(me)
    _no_guidance_outlives_its_two_turns(me)
    _the_next_answer_knows_the_first_segment(me, life, script)


@contextmanager
def no_provider(settings) -> Iterator[None]:
    """Nobody answers where the models are."""
    there, settings.ANTHROPIC_BASE_URL = settings.ANTHROPIC_BASE_URL, "http://127.0.0.1:9"
    yield
    settings.ANTHROPIC_BASE_URL = there


def _lived(me, script, settings) -> Life:
    life = Life(me, script)
    for number, turns in enumerate(TURNS):
        script.on("summary").answers(summary(number), times=1)
        for turn in range(turns):
            text = f"Segment {number}, turn {turn}: my boat Merula lies at berth 14."
            if number == COMPACTED:
                text = f"{text} {LONG}".strip()
            if number == FAST_AWAY and turn == 6:
                script.on("subcortical").fails(529, times=4)
            if number == ALL_AWAY and turn in (6, 7):
                with no_provider(settings):
                    life.say(text)
            elif number == KILLED and turn == 6:
                life.be_killed(text)
            else:
                life.say(text)
        life.go_quiet()
    return life


def _all_is_there(me, life, script):
    assert sum(TURNS) == len(life.sent) == 200
    messages = list(Message.objects.for_user(me).order_by("position"))

    # Every message is there, once, in order; and every one was answered.
    asked = [one.text for one in messages if one.role == Message.Role.USER]
    assert asked == life.sent
    assert [one.position for one in messages] == sorted({one.position for one in messages})
    answered = Message.objects.for_user(me).filter(role=Message.Role.ASSISTANT)
    assert answered.values("turn").distinct().count() == 200

    # No turn is stuck or failed; where no model was to be had, what was remembered was quoted.
    turns = Turn.objects.for_user(me)
    assert set(turns.values_list("status", flat=True)) == {Turn.Status.DONE}
    assert turns.filter(model="offline").count() == 2

    # Each segment has its trace, and none is left half collapsed.
    segments = list(Segment.objects.for_user(me).order_by("opened_at"))
    assert len(segments) == SEGMENTS
    assert {one.status for one in segments} == {Segment.Status.COLLAPSED}
    assert [one.title for one in segments] == [f"Harbour, part {n}" for n in range(SEGMENTS)]
    assert not CompactionBrief.objects.for_user(me).exists(), "briefs end with their segment"
    assert script.seen("compaction"), "the long segment was compacted on the way"

    # What the fast model did not say was said by rule.
    assert turns.filter(segment=segments[FAST_AWAY], subcortical__by="rule").exists()


def _four_fifths_come_from_the_cache(me):
    """From the third turn of a segment on."""
    rows = ModelCall.objects.for_user(me).filter(job="reply", outcome="ok")
    third = Turn.objects.for_user(me).filter(number__gte=3).values("pk")
    spent = rows.filter(turn_id__in=third).aggregate(
        read=Sum("cache_read_tokens"), written=Sum("cache_write_tokens"), new=Sum("input_tokens")
    )
    share = spent["read"] / (spent["read"] + spent["written"] + spent["new"])
    assert share >= 0.80, f"{share:.2f} of the input was a cache hit"


def _no_guidance_outlives_its_two_turns(me):
    observations = list(Observation.objects.for_user(me).exclude(action="noop"))
    assert observations and max(one.shown_count for one in observations) == 2
    last = {one.pk: one.turns.order_by("-number").first().number for one in
            Segment.objects.for_user(me)}  # fmt: skip
    for one in observations:
        shown = min(2, last[one.segment_id] - one.turn_number)
        assert one.shown_count <= shown


def _the_next_answer_knows_the_first_segment(me, life, script):
    turn = life.say("At which berth does my boat lie?")
    prompt = script.seen("reply")[-1].prompt
    assert "Alice's boat Merula lies at berth 14 in Piran." in prompt
    assert turn.surfaced.filter(memory__text__contains="berth 14").exists()
    turn.refresh_from_db()
    assert turn.status == Turn.Status.DONE
