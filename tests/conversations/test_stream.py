"""The stream of a person's events: in order, replayable, nobody else's."""

from __future__ import annotations

import threading
import time

import pytest

from conversations import stream
from conversations.constants import STREAM_TTL_S
from conversations.events import Event, order
from mira_site.errors import EventsUnavailable


def publish(user, text: str, turn_id: str | None = None) -> str:
    return stream.publish(user.pk, Event(type="notice", turn_id=turn_id, body={"text": text}))


def texts(events) -> list[str]:
    return [event.payload["text"] for event in events]


def test_events_come_back_in_order_from_any_point(alice):
    ids = [publish(alice, str(number)) for number in range(5)]
    assert ids == sorted(ids, key=order)
    assert texts(stream.after(alice.pk, stream.START)) == ["0", "1", "2", "3", "4"]
    assert texts(stream.after(alice.pk, ids[2])) == ["3", "4"]
    assert stream.last_id(alice.pk) == ids[-1]


def test_what_comes_after_forgetting_is_later_than_all_before(alice):
    """Whoever had heard the last event would not hear one that bears an earlier id."""
    for _ in range(200):
        before = publish(alice, "said")
        assert stream.forget(alice.pk)
        assert stream.is_later(publish(alice, "forgotten"), than=before)
    assert texts(stream.after(alice.pk, stream.START)) == ["forgotten"]


def test_nobody_reads_somebody_elses(alice, bob):
    publish(alice, "Hello")
    assert stream.after(bob.pk, stream.START) == []
    assert stream.last_id(bob.pk) == stream.START


def test_the_events_of_one_turn_are_followed_as_they_come(alice):
    publish(alice, "early", "a")

    def later() -> None:
        time.sleep(0.1)
        publish(alice, "other", "b")
        publish(alice, "late", "a")

    writer = threading.Thread(target=later)
    writer.start()
    following = stream.of_turn(alice.pk, "a", stream.START, wait_s=5)
    assert texts([next(following), next(following)]) == ["early", "late"]
    writer.join()


def test_following_ends_after_the_silence_it_was_told(alice):
    started = time.monotonic()
    assert list(stream.of_turn(alice.pk, "a", stream.START, wait_s=0.2)) == []
    assert time.monotonic() - started < 2


def test_what_is_kept_ends_ten_minutes_after_the_last_event(alice):
    publish(alice, "Hello")
    left_s = stream.client().ttl(stream.key(alice.pk))
    assert STREAM_TTL_S - 5 <= left_s <= STREAM_TTL_S == 600


def test_without_redis_a_write_is_let_go_and_a_read_says_so(alice, redis_away):
    assert publish(alice, "Hello") == ""
    with pytest.raises(EventsUnavailable):
        stream.last_id(alice.pk)
    with pytest.raises(EventsUnavailable):
        stream.after(alice.pk, stream.START)


def test_ids_compare_by_number_and_not_by_letter():
    assert stream.is_later("10-0", than="9-5")
    assert stream.is_later("9-10", than="9-9")
    assert not stream.is_later("9", than="9-0")
