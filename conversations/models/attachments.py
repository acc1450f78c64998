"""Files that came with messages: what they are, and what is in them."""

from __future__ import annotations

from django.db import models

from conversations.models.thread import Message
from mira_site.crypto import EncryptedBytesField, EncryptedTextField
from mira_site.owned import Owned


class Attachment(Owned):
    """A file of a message; without one until it is sent. What is in it stands in its body."""

    message = models.ForeignKey(
        Message, null=True, blank=True, on_delete=models.CASCADE, related_name="attachments"
    )
    position = models.PositiveSmallIntegerField(default=0, help_text="Among those of the message.")
    name = models.CharField(max_length=200, help_text="As the person's device called it.")
    media_type = models.CharField(max_length=100, help_text="Found by what is in it.")
    size = models.PositiveIntegerField(help_text="Bytes that are kept.")
    sha256 = models.CharField(max_length=64)
    width = models.PositiveIntegerField(null=True, blank=True)
    height = models.PositiveIntegerField(null=True, blank=True)
    pages = models.PositiveIntegerField(null=True, blank=True)
    text_tokens = models.PositiveIntegerField(
        default=0, help_text="Estimate for the text found in it, as far as it is kept."
    )
    is_text_cut = models.BooleanField(default=False, help_text="There was more text than is kept.")
    is_shown_whole = models.BooleanField(
        default=False, help_text="A model gets the file itself and not the text found in it."
    )
    forgotten_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Since when MIRA does not look into it: it tells what the person had forgotten.",
    )
    created_at = models.DateTimeField()

    class Meta:
        db_table = "conversations_attachments"
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["message", "position"], name="one_file_a_position")
        ]
        indexes = [
            models.Index(
                fields=["created_at"],
                condition=models.Q(message__isnull=True),
                name="attachment_unsent",
            )
        ]

    def __str__(self) -> str:
        return f"file {self.short_id} ({self.media_type})"


class AttachmentBody(Owned):
    """What is in a file, encrypted. Apart, so that it is read only where it is wanted."""

    attachment = models.OneToOneField(Attachment, on_delete=models.CASCADE, related_name="body")
    content = EncryptedBytesField()
    text = EncryptedTextField(default="", help_text="Text found in it, as far as it is kept.")

    class Meta:
        db_table = "conversations_attachment_bodies"
        verbose_name_plural = "attachment bodies"

    def __str__(self) -> str:
        return f"body of file {self.attachment_id}"
