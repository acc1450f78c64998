"""What is searched for before an answer, what stays from the turn before."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from conversations import phrases, presenting, surfacing
from conversations.constants import PHRASES_MAX, SURFACED_MAX
from conversations.models import Message, SurfacedMemory
from memory import services as memory
from memory.models import Memory, MemoryAccess, MemoryLink, Trust
from memory.types import Compared
from tests import messages_api
from tests.conversations.talking import heard, know, put_to_rest, reply, say


def talk(*texts: str) -> list[Message]:
    """The person and MIRA in turns, the person last."""
    roles = ("user", "assistant")
    start = len(texts) % 2 == 0
    return [
        Message(role=roles[(number + start) % 2], text=text) for number, text in enumerate(texts)
    ]


def surfaced(turn) -> list[SurfacedMemory]:
    return list(turn.surfaced.select_related("memory"))


def texts(turn) -> list[str]:
    return [row.memory.text for row in surfaced(turn)]


class TestPhrases:
    def test_a_message_that_stands_alone_is_the_phrase(self):
        newest = "Please recommend four sturdy waterproof hiking boots for mountain trails."
        assert phrases.queries(talk("My boat leaks.", "Oh no.", newest)) == [newest]

    @pytest.mark.parametrize("newest", ["And when is hers?", "Und wann ist ihrer?", "Why?"])
    def test_what_points_back_is_searched_for_with_what_it_points_at(self, newest):
        first, second = phrases.queries(
            talk("Mira met Anna on her birthday in Graz.", "Lovely.", newest)
        )
        assert first == newest
        assert second.endswith(newest)
        assert second.startswith("Anna Graz ")
        assert "birthday" in second

    def test_a_long_message_is_also_searched_for_by_its_most_telling_sentences(self):
        newest = (
            "Hello again. Yesterday the harbour office in Trieste wrote about the berth of Merula. "
            "So it goes. My dentist moved the appointment to Tuesday morning. Oh well. "
            "I also bought varnish, sandpaper and two brushes at the chandlery."
        )
        found = phrases.queries(talk(newest))
        assert found[0] == newest
        assert "My dentist moved the appointment to Tuesday morning." in found
        assert not {"So it goes.", "Oh well.", "Hello again."} & set(found)

    def test_there_are_never_too_many_nor_the_same_twice(self):
        newest = " ".join(f"Sentence number {n} tells of harbour {n}." for n in range(40))
        found = phrases.queries(talk("It was Anna.", "Who?", newest))
        assert len(found) == len(set(found)) <= PHRASES_MAX

    def test_names_are_those_of_the_message_or_else_those_just_spoken_of(self):
        before = ("I met Anna in Graz.", "How is she?")
        assert phrases.names(talk(*before, "What does Tom like?")) == ["Tom"]
        assert phrases.names(talk(*before, "What does she like?")) == ["Anna", "Graz"]
        assert phrases.names(talk(*before, "Does Tom like her?")) == ["Tom", "Anna", "Graz"]
        found = phrases.names(talk("Thank you. Tell me of Ada. Short news: Ben came."))
        assert found == ["Ada", "Ben"]
        found = phrases.names(talk(*before, "Please recommend sturdy waterproof boots."))
        assert found == []


class TestInUse:
    BEFORE = Compared(
        id=uuid.UUID("ab12cd34" + "0" * 24),
        text="Alice's boat Merula needs new varnish",
        similarity=0.1,
    )

    @pytest.mark.parametrize(
        ("history", "stays"),
        [
            (("Tell me about ab12cd34.",), True),
            (("Hm.", "See ab12cd34.", "All right, then tell me about Roman emperors."), True),
            (("Which varnish suits the boat Merula?",), True),
            (("What is the tallest mountain of Europe?",), False),
            (("Hm.", "Your boat Merula needs varnish.", "Why is that?"), True),
            (("Hm.", "Your boat Merula needs varnish.", "Recommend sturdy boots, please."), False),
        ],
    )
    def test_it_is_by_name_by_words_or_by_what_the_message_points_back_at(self, history, stays):
        assert surfacing.is_in_use(self.BEFORE, talk(*history)) is stays

    def test_it_is_by_meaning(self):
        near = Compared(id=self.BEFORE.id, text=self.BEFORE.text, similarity=0.41)
        assert surfacing.is_in_use(near, talk("What is the tallest mountain of Europe?"))


class TestTurns:
    def test_what_is_still_talked_about_stays_first_and_the_rest_goes(self, me):
        boat = know(me, "Alice's boat Merula has a leak in the bow.")
        know(me, "Alice's favourite cake is made of quinces.")
        first = say(me, "Where does my boat leak?")
        assert texts(first) == [boat.text]
        second = say(me, "Can that be fixed?")
        assert texts(second)[0] == boat.text
        assert surfaced(second)[0].parts["path"] == "kept"
        third = say(me, "Which cake do I like best?")
        assert texts(third) == ["Alice's favourite cake is made of quinces."]

    def test_what_was_muted_archived_or_forgotten_meanwhile_does_not_stay(self, me):
        boat = know(me, "Alice's boat Merula has a leak in the bow.")
        say(me, "Where does my boat leak?")
        Memory.objects.for_user(me).filter(pk=boat.pk).update(muted_at=timezone.now())
        assert texts(say(me, "Can that leak of the boat be fixed?")) == []

    def test_nothing_stays_over_the_end_of_a_segment(self, me):
        know(me, "Alice's boat Merula has a leak in the bow.")
        say(me, "Where does my boat leak?", at=timezone.now() - timedelta(hours=2))
        put_to_rest(me)
        rows = surfaced(say(me, "Where does my boat leak?"))
        assert rows
        assert all(row.parts["path"] != "kept" for row in rows)

    def test_there_are_never_more_than_the_cap_and_new_ones_find_room(self, me):
        for number in range(12):
            know(me, f"Alice sailed to island number {number}.")
        say(me, "To which islands did I sail?")
        know(me, "Alice sailed around the quince archipelago.")
        rows = surfaced(say(me, "Did I sail to the quince archipelago?"))
        assert len(rows) == SURFACED_MAX
        paths = [row.parts["path"] for row in rows]
        assert paths.count("kept") == 6
        assert rows[6].memory.text == "Alice sailed around the quince archipelago."

    def test_a_linked_one_is_in_front_of_mira_too_says_so_and_is_no_access(
        self, me, fake_anthropic
    ):
        boat = know(me, "Alice's boat Merula leaks.")
        other = know(me, "Rhubarb needs shade.")
        MemoryLink.objects.create(
            user=me, source=boat, target=other, link_type="refines", author="rule",
            created_at=timezone.now(),
        )  # fmt: skip
        turn = say(me, "Where does my boat leak?")
        primary, linked = surfaced(turn)
        assert (primary.memory_id, linked.memory_id) == (boat.pk, other.pk)
        assert (linked.parts["path"], linked.parts["linked_to"]) == ("link", str(boat.pk))
        accessed = MemoryAccess.objects.for_user(me).values_list("memory_id", flat=True)
        assert list(accessed) == [boat.pk]
        blocks = messages_api.blocks(fake_anthropic.seen("reply")[-1].json["messages"][-1])
        hud = next(block["text"] for block in blocks if block["text"].startswith("<hud>"))
        assert f'<linked how="refines" id="mem_{other.short_id}"' in hud
        context = next(event for event in heard(me) if event.type == "context.ready")
        assert [one["parts"]["path"] for one in context.payload["surfaced"]] == ["words", "link"]
        again = say(me, "And how bad is it?")
        assert other.pk not in {
            row.memory_id for row in surfaced(again) if row.parts["path"] == "kept"
        }

    def test_path_phrase_and_score_parts_are_kept_with_the_turn(self, me):
        know(me, "Alice's boat Merula leaks.")
        (row,) = surfaced(say(me, "Where does my boat leak?"))
        assert row.parts["path"] == "words"
        assert row.parts["phrase"] == "Where does my boat leak?"
        assert set(row.parts["words"]) == {"boat", "leak"}
        assert {"similarity", "overlap", "relevance", "importance"} <= set(row.parts)
        assert row.score == pytest.approx(
            row.parts["relevance"] * (0.8 + 0.2 * row.parts["importance"]), abs=1e-3
        )
        assert presenting.surfaced([row])[0]["parts"] == row.parts

    def test_a_question_for_the_past_is_answered_with_what_was(self, me):
        old = know(me, "Alice lives in Graz.")
        Memory.objects.for_user(me).filter(pk=old.pk).update(valid_until=timezone.now())
        know(me, "Alice lives in Linz.")
        assert texts(say(me, "Where do I live now?")) == ["Alice lives in Linz."]
        assert old.text in texts(say(me, "Where did I live before?"))

    def test_the_hud_says_whose_word_a_memory_is(self, me, fake_anthropic):
        boat = know(me, "Alice read: Merula boats <sink> often.")
        Memory.objects.for_user(me).filter(pk=boat.pk).update(trust=Trust.OUTSIDE)
        say(me, "Do Merula boats sink?")
        blocks = messages_api.blocks(fake_anthropic.seen("reply")[-1].json["messages"][-1])
        hud = next(block["text"] for block in blocks if block["text"].startswith("<hud>"))
        assert 'origin="read in outside text"' in hud
        assert "&lt;sink&gt;" in hud

    def test_nothing_of_another_person_comes_up_or_stays(self, me, bob, acting):
        with acting(bob):
            memory.create(user=bob, text="Bob's boat Merula leaks.")
            say(bob, "Where does my boat leak?")
        assert texts(say(me, "Where does my boat Merula leak?")) == []
        assert "Merula leaks" not in reply(say(me, "And why?"))
