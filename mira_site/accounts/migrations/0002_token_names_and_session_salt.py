"""Names of API tokens, and a salt whose change ends an account's sessions."""

from __future__ import annotations

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from mira_site.isolation import EnableRowSecurity


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="session_salt",
            field=models.CharField(
                blank=True,
                default="",
                editable=False,
                help_text="Anew ends all sessions.",
                max_length=32,
            ),
        ),
        migrations.CreateModel(
            name="TokenName",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "digest",
                    models.CharField(help_text="Primary key of knox.AuthToken.", max_length=128),
                ),
                ("name", models.CharField(max_length=60)),
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
                "db_table": "accounts_token_names",
                "constraints": [
                    models.UniqueConstraint(fields=("digest",), name="one_name_a_token")
                ],
            },
        ),
        EnableRowSecurity("accounts_token_names"),
    ]
