import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from mira_site.isolation import EnableRowSecurity


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0002_tool_calls"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="segment",
            name="summary_stale_at",
            field=models.DateTimeField(
                blank=True,
                help_text="Since when its summary is gone, because what it told was forgotten or changed.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="message",
            name="edited_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="message",
            name="reread_due_at",
            field=models.DateTimeField(
                blank=True,
                help_text="Changed after its segment was remembered, and to be read for memories again.",
                null=True,
            ),
        ),
        migrations.CreateModel(
            name="ForgottenPassage",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("start", models.PositiveIntegerField()),
                ("end", models.PositiveIntegerField()),
                (
                    "message",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="forgotten",
                        to="conversations.message",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "conversations_forgotten_passages",
                "constraints": [
                    models.UniqueConstraint(
                        fields=["message", "start", "end"], name="one_row_a_forgotten_passage"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(end__gt=models.F("start")),
                        name="forgotten_passage_has_length",
                    ),
                ],
            },
        ),
        EnableRowSecurity("conversations_forgotten_passages"),
    ]
