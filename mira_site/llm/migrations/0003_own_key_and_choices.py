"""A person's own key at the provider, and their choices about models."""

from __future__ import annotations

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import mira_site.crypto
from mira_site.isolation import EnableRowSecurity


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("llm", "0002_cost_of_a_call"),
    ]

    operations = [
        migrations.CreateModel(
            name="ModelSettings",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "monthly_cap",
                    models.DecimalField(
                        decimal_places=2,
                        help_text="Dollars a month; budget.py.",
                        max_digits=8,
                        null=True,
                    ),
                ),
                (
                    "noticed_on",
                    models.DateField(
                        help_text="First day of the month for which a near cap was told.",
                        null=True,
                    ),
                ),
                (
                    "chosen",
                    models.JSONField(
                        default=dict, help_text="Model by tier, where the server allows."
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
                "db_table": "llm_model_settings",
                "constraints": [
                    models.UniqueConstraint(fields=("user",), name="one_model_settings_a_user"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("monthly_cap__isnull", True), ("monthly_cap__gt", 0), _connector="OR"
                        ),
                        name="monthly_cap_is_positive",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ProviderKey",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("secret", mira_site.crypto.EncryptedTextField(editable=False)),
                (
                    "last_four",
                    models.CharField(help_text="All of it that is ever shown again.", max_length=4),
                ),
                ("set_at", models.DateTimeField()),
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
                "db_table": "llm_provider_keys",
                "constraints": [
                    models.UniqueConstraint(fields=("user",), name="one_provider_key_a_user"),
                ],
            },
        ),
        EnableRowSecurity("llm_model_settings", "llm_provider_keys"),
    ]
