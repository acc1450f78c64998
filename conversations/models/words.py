"""Where words stand in the thread, for a search that does not grow with it."""

from __future__ import annotations

from django.db import models

from mira_site.owned import Owned


class WordPlaces(Owned):
    """The places of some words among the messages of one block, which is full.

    Block 0 holds positions 0 to 1,023, and so on. A row holds the words whose hash ends in
    `bucket`: in four bytes each, the rest of the hash and a place in the block, in no order
    (`rest << 10 | place`). A block has a row for each bucket or none.
    Triggers write them (migration 0011, ADR 0015).
    """

    block = models.PositiveIntegerField()
    bucket = models.PositiveSmallIntegerField()
    codes = models.BinaryField()

    class Meta:
        db_table = "conversations_word_places"
        verbose_name_plural = "places of words"
        constraints = [
            models.UniqueConstraint(
                fields=["user", "bucket", "block"], name="one_row_a_bucket_of_a_block"
            )
        ]

    def __str__(self) -> str:
        return f"words {self.bucket} of block {self.block}"
