import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from mira_site.isolation import EnableRowSecurity


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ToolCall",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("position", models.PositiveSmallIntegerField()),
                ("name", models.CharField(max_length=50)),
                ("input", models.JSONField()),
                ("result", models.TextField()),
                ("is_error", models.BooleanField()),
                (
                    "summary",
                    models.CharField(
                        help_text="The quiet line that the person sees.", max_length=120
                    ),
                ),
                ("called_at", models.DateTimeField()),
                (
                    "turn",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tool_calls",
                        to="conversations.turn",
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
                "db_table": "conversations_tool_calls",
                "ordering": ["position"],
                "constraints": [
                    models.UniqueConstraint(fields=["turn", "position"], name="one_call_a_position")
                ],
            },
        ),
        EnableRowSecurity("conversations_tool_calls"),
    ]
