import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import mira_site.crypto
from mira_site.isolation import EnableRowSecurity


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0005_cognition"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Attachment",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "position",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="Among those of the message."
                    ),
                ),
                (
                    "name",
                    models.CharField(help_text="As the person's device called it.", max_length=200),
                ),
                (
                    "media_type",
                    models.CharField(help_text="Found by what is in it.", max_length=100),
                ),
                ("size", models.PositiveIntegerField(help_text="Bytes that are kept.")),
                ("sha256", models.CharField(max_length=64)),
                ("width", models.PositiveIntegerField(blank=True, null=True)),
                ("height", models.PositiveIntegerField(blank=True, null=True)),
                ("pages", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "text_tokens",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Estimate for the text found in it, as far as it is kept.",
                    ),
                ),
                (
                    "is_text_cut",
                    models.BooleanField(
                        default=False, help_text="There was more text than is kept."
                    ),
                ),
                (
                    "is_shown_whole",
                    models.BooleanField(
                        default=False,
                        help_text="A model gets the file itself and not the text found in it.",
                    ),
                ),
                (
                    "forgotten_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="Since when MIRA does not look into it: it tells what the person had forgotten.",
                        null=True,
                    ),
                ),
                ("created_at", models.DateTimeField()),
                (
                    "message",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attachments",
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
                "db_table": "conversations_attachments",
                "ordering": ["position"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("message__isnull", True)),
                        fields=["created_at"],
                        name="attachment_unsent",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("message", "position"), name="one_file_a_position"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AttachmentBody",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("content", mira_site.crypto.EncryptedBytesField(editable=False)),
                (
                    "text",
                    mira_site.crypto.EncryptedTextField(
                        default="",
                        editable=False,
                        help_text="Text found in it, as far as it is kept.",
                    ),
                ),
                (
                    "attachment",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="body",
                        to="conversations.attachment",
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
                "verbose_name_plural": "attachment bodies",
                "db_table": "conversations_attachment_bodies",
            },
        ),
        EnableRowSecurity("conversations_attachments", "conversations_attachment_bodies"),
    ]
