"""What conversations tell of: a collapse, once, in the transaction that ends it."""

from __future__ import annotations

import json

import pytest

from mira_site.webhooks import services
from mira_site.webhooks.models import Delivery
from tests.conversations.talking import put_to_rest, quiet

pytestmark = pytest.mark.django_db


def test_a_collapsed_segment_is_told_without_what_it_was_about(as_alice, embedder):
    services.create(user=as_alice, url="https://example.org/hook", events=["*"])
    quiet(as_alice, "I moved to Graz in May.")
    segment = put_to_rest(as_alice)
    rows = Delivery.objects.for_user(as_alice)
    payload = rows.get(event_type="segment.collapsed").payload
    assert payload["segment"] == str(segment.pk)
    assert set(payload) == {"segment", "opened_at", "last_message_at", "is_summary_by_model"}
    stored = [row.payload for row in rows.filter(event_type="memory.stored")]
    assert [one["segment"] for one in stored] == [str(segment.pk)]
    everything = json.dumps([row.payload for row in rows])
    assert "Graz" not in everything
