"""The thread by position and by date, and its segments by date, of one person among many.

Queries name the person, not the thread: row-level security does, and so the indexes begin with it.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("conversations", "0007_counted_tokens"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="message",
            index=models.Index(fields=["user", "position"], name="message_user_position"),
        ),
        AddIndexConcurrently(
            model_name="message",
            index=models.Index(fields=["user", "created_at"], name="message_user_created"),
        ),
        AddIndexConcurrently(
            model_name="segment",
            index=models.Index(fields=["user", "-opened_at", "-id"], name="segment_user_opened"),
        ),
    ]
