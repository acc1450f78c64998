"""A month of talk, lived in fast motion: what memory must have done at its end."""

from __future__ import annotations

import pytest

from mira_site.accounts.models import User
from mira_site.simulation import claims, life, story


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(300)
def test_a_month_of_talk_leaves_memory_as_it_should_be(embedder):
    with life.lived(story.tell(facts=150)) as lived:
        judged = claims.judged(lived)
    assert [one for one in judged if not one.holds] == []
    assert not User.objects.exists()
