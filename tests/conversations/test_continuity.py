"""What a segment goes on from: traces by weight, names of all, and the very last words."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from conversations.continuity import chosen
from conversations.models import Segment
from conversations.types import Summary
from tests.conversations.talking import put_to_rest, say

AT = datetime(2026, 11, 1, 12, tzinfo=UTC)


def summary(complexity: float, *, precis: str = "In short.", day: int = 0) -> Summary:
    return Summary(
        segment_id=uuid.uuid4(),
        opened_at=AT - timedelta(days=day),
        last_message_at=AT - timedelta(days=day),
        title="A title",
        precis=precis,
        trace="I heard it.",
        complexity=complexity,
    )


@pytest.mark.parametrize(
    ("complexities", "told", "hinted"),
    [
        ([3, 2, 1], 1, 2),  # 3 + 2 is over 4.5
        ([2, 2, 0.5, 0.5], 3, 1),
        ([0.5] * 12, 4, 4),
        ([3], 1, 0),
        ([], 0, 0),
    ],
)
def test_complexity_says_how_many_are_told_whole(complexities, told, hinted):
    whole, short = chosen([summary(one) for one in complexities])
    assert (len(whole), len(short)) == (told, hinted)


def test_an_older_one_without_a_precis_is_skipped():
    newest, blank, older = summary(3), summary(2, precis=""), summary(1)
    assert chosen([newest, blank, older]) == ([newest], [older])


class TestPrompt:
    def system(self, fake_anthropic) -> str:
        return fake_anthropic.seen("reply")[-1].system

    @pytest.fixture
    def next_segment(self, me, fake_anthropic):
        fake_anthropic.on("reply").says("The very last reply.")
        fake_anthropic.on("summary").answers(
            {
                "trace": "I heard that the boat lies in Piran at berth 14 since May.",
                "precis": "The boat lies in Piran.",
                "title": "Boat <b>in Piran</b>",
                "complexity": 2,
            }
        )
        say(me, "The boat lies in Piran.")
        say(me, "At berth 14.")
        say(me, "Good night!")
        put_to_rest(me)
        return say(me, "Good morning!")

    def test_it_ends_with_the_last_two_pairs_word_for_word(self, next_segment, fake_anthropic):
        system = self.system(fake_anthropic)
        words = system.split("<last_words>")[1].split("</last_words>")[0]
        assert words.count("<said ") == 4
        assert "Good night!" in words and words.rstrip().endswith("The very last reply.</said>")
        assert "The boat lies in Piran.</said>" not in words

    def test_the_manifest_names_each_part_by_day_and_title(self, next_segment, fake_anthropic):
        manifest = self.system(fake_anthropic).split("<manifest>")[1].split("</manifest>")[0]
        assert manifest.count("<segment ") == 1
        assert "Boat &lt;b&gt;in Piran&lt;/b&gt;" in manifest
        assert f'<day on="{next_segment.created_at:%A}' in manifest

    def test_of_parts_that_are_told_nowhere_else_it_says_in_short_what_they_were(
        self, me, next_segment, fake_anthropic
    ):
        row = next_segment.segment
        for days in range(1, 11):
            at = row.opened_at - timedelta(days=days)
            Segment.objects.create(
                user=me, thread=row.thread, status="collapsed", opened_at=at, last_message_at=at,
                title=f"Part {days}", precis=f"Precis {days}. {'Long. ' * 100}",
                trace=f"Trace {days}.", complexity=2, summarised_at=at, remembered_at=at,
                collapsed_at=at,
            )  # fmt: skip
        say(me, "And so on.")
        system = self.system(fake_anthropic)
        manifest = system.split("<manifest>")[1].split("</manifest>")[0]
        assert "Precis 10." in manifest and manifest.count("Long.") < 10 * 60
        for days in range(1, 11):
            assert system.count(f"Trace {days}.") + system.count(f"Precis {days}.") == 1

    def test_all_of_it_is_the_same_in_every_turn_of_the_segment(
        self, me, next_segment, fake_anthropic
    ):
        before = self.system(fake_anthropic)
        say(me, "And so on.")
        assert self.system(fake_anthropic) == before

    def test_what_was_said_off_the_record_is_no_last_word(self, me, next_segment, fake_anthropic):
        put_to_rest(me)
        next_segment.messages.update(is_off_record=True)
        say(me, "Hello again.")
        assert "Good morning!" not in self.system(fake_anthropic)
