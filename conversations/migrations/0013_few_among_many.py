"""What is so of a few rows of a thread and asked at each turn, or whenever the veil lifts."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("conversations", "0012_fill_word_places")]

    operations = [
        AddIndexConcurrently(
            model_name="message",
            index=models.Index(
                fields=["user", "edited_at"],
                condition=models.Q(edited_at__isnull=False),
                name="message_edited",
            ),
        ),
        AddIndexConcurrently(
            model_name="message",
            index=models.Index(
                fields=["user", "position"],
                condition=models.Q(is_off_record=True),
                name="message_off_record",
            ),
        ),
        AddIndexConcurrently(
            model_name="segment",
            index=models.Index(
                fields=["user", "summary_stale_at"],
                condition=models.Q(summary_stale_at__isnull=False),
                name="segment_stale",
            ),
        ),
        AddIndexConcurrently(
            model_name="turn",
            index=models.Index(
                fields=["thread"],
                condition=models.Q(is_off_record=True),
                name="turn_off_record",
            ),
        ),
    ]
