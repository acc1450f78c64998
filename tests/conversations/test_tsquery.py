"""What a message must hold to answer a query, as PostgreSQL understands it."""

from __future__ import annotations

import pytest
from django.db import connection

from conversations import tsquery
from conversations.tsquery import Both, Either, Without, Word

BOAT, OAR, SAIL = Word("boat"), Word("oar"), Word("sail")


@pytest.mark.parametrize(
    ("query", "needed"),
    [
        ("boats", BOAT),
        ("boat oars", Both(BOAT, OAR)),
        ('"boat oar"', Both(BOAT, OAR)),
        ("boat or oar", Either(BOAT, OAR)),
        ("boat oar or sail", Either(Both(BOAT, OAR), SAIL)),
        ("sail -oar boat", Both(Both(SAIL, Without("oar")), BOAT)),
        ('sail -"boat oar"', SAIL),
        ("-oar", Without("oar")),
        ("boat or -oar", Either(BOAT, Without("oar"))),
        ('-"boat oar"', None),
        ('boat or -"boat oar"', None),
        (r"it's a back\slash", Both(Word("back"), Word("slash"))),
    ],
)
def test_the_words_that_must_be_there(db, query, needed):
    with connection.cursor() as cursor:
        cursor.execute("SELECT websearch_to_tsquery('english', %s)::text", [query])
        assert tsquery.condition(cursor.fetchone()[0]) == needed


def test_quotes_and_backslashes_in_words_are_read():
    assert tsquery.condition(r"'o''brien' & 'a\\b'") == Both(Word("o'brien"), Word("a\\b"))


def test_what_is_no_query_is_refused():
    with pytest.raises(ValueError, match="No word"):
        tsquery.condition("'boat' &")
