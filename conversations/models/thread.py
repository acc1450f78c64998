"""The one thread of a person: messages in segments, and the turns that answer them."""

from __future__ import annotations

from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import models
from pgvector.django import VectorField

from conversations.constants import EMBEDDING_DIMENSIONS
from memory.models import Memory
from mira_site.owned import Owned, OwnedQuerySet


class Thread(Owned):
    """The conversation of a person, for ever. Its row is the lock under which it grows."""

    created_at = models.DateTimeField(auto_now_add=True)
    last_position = models.PositiveBigIntegerField(default=0)

    class Meta:
        db_table = "conversations_threads"
        constraints = [models.UniqueConstraint(fields=["user"], name="one_thread_a_person")]

    def __str__(self) -> str:
        return f"thread {self.short_id}"


class SegmentQuerySet(OwnedQuerySet):
    def collapsed(self) -> SegmentQuerySet:
        return self.filter(status=Segment.Status.COLLAPSED)


class Segment(Owned):
    """A stretch of the thread. Once quiet it collapses into a trace and memories.

    `summarised_at` and `remembered_at` are the two steps of a collapse; a collapsing segment
    without them is due. `next_attempt_at` holds it back after a failure, `claimed_until` while
    somebody works on it.
    """

    class Status(models.TextChoices):
        ACTIVE = "active"
        COLLAPSING = "collapsing"
        COLLAPSED = "collapsed"

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="segments")
    status = models.CharField(max_length=12, choices=Status, default=Status.ACTIVE)
    opened_at = models.DateTimeField()
    last_message_at = models.DateTimeField()
    collapsed_at = models.DateTimeField(null=True, blank=True)
    title = models.CharField(max_length=200, blank=True, default="")
    precis = models.TextField(blank=True, default="")
    trace = models.TextField(blank=True, default="")
    complexity = models.FloatField(null=True, blank=True)
    is_summary_by_model = models.BooleanField(default=False)
    embedding = VectorField(dimensions=EMBEDDING_DIMENSIONS, null=True, blank=True)
    embedding_model = models.CharField(
        max_length=16,
        blank=True,
        default="",
        help_text="Fingerprint of the model it is by (embeddings.model_id); empty: unknown.",
    )
    summarised_at = models.DateTimeField(null=True, blank=True)
    summary_stale_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Since when its summary is gone, because what it told was forgotten or changed.",
    )
    remembered_at = models.DateTimeField(null=True, blank=True)
    collapse_asked_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="The person wished it wrapped up while MIRA answered; done once she has.",
    )
    reopened_at = models.DateTimeField(
        null=True, blank=True, help_text="When the person took its collapse back."
    )
    claimed_until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    error_code = models.CharField(max_length=40, blank=True, default="")

    objects = SegmentQuerySet.as_manager()  # type: ignore[misc]  # it narrows Owned's

    class Meta:
        db_table = "conversations_segments"
        constraints = [
            models.UniqueConstraint(
                fields=["thread"], condition=models.Q(status="active"), name="one_active_segment"
            ),
            models.CheckConstraint(
                condition=~models.Q(status="collapsed")
                | models.Q(summarised_at__isnull=False, remembered_at__isnull=False),
                name="collapsed_segment_is_complete",
            ),
        ]
        indexes = [
            models.Index(fields=["thread", "-opened_at", "-id"], name="segment_thread_opened"),
            models.Index(fields=["user", "-opened_at", "-id"], name="segment_user_opened"),
            models.Index(fields=["status", "last_message_at"], name="segment_status_last"),
            models.Index(
                fields=["user", "summary_stale_at"],
                condition=models.Q(summary_stale_at__isnull=False),
                name="segment_stale",
            ),
        ]

    def __str__(self) -> str:
        return f"segment {self.short_id} ({self.status})"


class Turn(Owned):
    """A message of the person and everything done to answer it."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        STOPPED = "stopped"
        FAILED = "failed"
        INTERRUPTED = "interrupted"

    OPEN = (Status.QUEUED, Status.RUNNING)
    RETRYABLE = (Status.STOPPED, Status.FAILED, Status.INTERRUPTED)

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="turns")
    segment = models.ForeignKey(Segment, on_delete=models.CASCADE, related_name="turns")
    client_id = models.UUIDField(help_text="Chosen by the client; the same again is the same turn.")
    number = models.PositiveIntegerField(
        default=0, help_text="Its place among the turns of its segment, from 1."
    )
    is_off_record = models.BooleanField(default=False)
    status = models.CharField(max_length=12, choices=Status, default=Status.QUEUED)
    attempt = models.PositiveSmallIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    queued_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    resume_after = models.CharField(
        max_length=40, default="0", help_text="Id of the event just before this turn's first."
    )
    error_code = models.CharField(max_length=40, blank=True, default="")
    error_detail = models.CharField(max_length=300, blank=True, default="")
    model = models.CharField(max_length=100, blank=True, default="")
    effort = models.CharField(max_length=10, blank=True, default="")
    stop_reason = models.CharField(
        max_length=20, blank=True, default="", help_text="Why the model ended, in its words."
    )
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cache_read_tokens = models.PositiveIntegerField(default=0)
    cache_write_tokens = models.PositiveIntegerField(default=0)

    class Meta:
        db_table = "conversations_turns"
        constraints = [
            models.UniqueConstraint(
                fields=["thread"],
                condition=models.Q(status__in=["queued", "running"]),
                name="one_open_turn",
            ),
            models.UniqueConstraint(fields=["user", "client_id"], name="one_turn_a_client_id"),
        ]
        indexes = [
            models.Index(fields=["status", "heartbeat_at"], name="turn_status_heartbeat"),
            models.Index(fields=["thread", "-created_at"], name="turn_thread_created"),
            models.Index(
                fields=["thread"],
                condition=models.Q(is_off_record=True),
                name="turn_off_record",
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.short_id} ({self.status})"


class Message(Owned):
    """What was said: content blocks in order, and their text for search."""

    class Role(models.TextChoices):
        USER = "user"
        ASSISTANT = "assistant"

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="messages")
    segment = models.ForeignKey(Segment, on_delete=models.CASCADE, related_name="messages")
    turn = models.ForeignKey(
        Turn, null=True, blank=True, on_delete=models.CASCADE, related_name="messages"
    )
    position = models.PositiveBigIntegerField()
    role = models.CharField(max_length=12, choices=Role)
    content = models.JSONField(help_text='Blocks in order, e.g. [{"type": "text", "text": "…"}].')
    text = models.TextField(blank=True, help_text="The text blocks joined.")
    is_partial = models.BooleanField(
        default=False, help_text="The answer was stopped before its end."
    )
    is_cut = models.BooleanField(
        default=False, help_text="The answer met the output limit; it can be continued."
    )
    is_off_record = models.BooleanField(
        default=False, help_text="Said behind the veil: never remembered, erased when it lifts."
    )
    created_at = models.DateTimeField()
    edited_at = models.DateTimeField(null=True, blank=True)
    reread_due_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Changed after its segment was remembered, and to be read for memories again.",
    )
    search_vector = models.GeneratedField(
        expression=SearchVector("text", config="english"),
        output_field=SearchVectorField(),
        db_persist=True,
    )

    # Annotated where many are read for a prompt; elsewhere nobody has looked.
    has_files: bool | None = None
    turn_effort: str = ""

    class Meta:
        db_table = "conversations_messages"
        constraints = [
            models.UniqueConstraint(fields=["thread", "position"], name="one_message_a_position"),
            models.UniqueConstraint(fields=["turn", "role"], name="one_message_a_role_in_a_turn"),
        ]
        indexes = [
            models.Index(fields=["segment", "position"], name="message_segment_position"),
            models.Index(fields=["user", "position"], name="message_user_position"),
            models.Index(fields=["user", "created_at"], name="message_user_created"),
            models.Index(
                fields=["user", "edited_at"],
                condition=models.Q(edited_at__isnull=False),
                name="message_edited",
            ),
            models.Index(
                fields=["user", "position"],
                condition=models.Q(is_off_record=True),
                name="message_off_record",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} message {self.short_id}"


class Veil(Owned):
    """A stretch off the record: what is said under it reads memory, never feeds it, and goes."""

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="veils")
    drawn_at = models.DateTimeField()
    lifts_at = models.DateTimeField(help_text="An hour after its last message, unless lifted.")
    lifted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "conversations_veils"
        constraints = [
            models.UniqueConstraint(
                fields=["thread"],
                condition=models.Q(lifted_at__isnull=True),
                name="one_drawn_veil",
            )
        ]
        indexes = [models.Index(fields=["lifted_at", "lifts_at"], name="veil_lifts")]

    def __str__(self) -> str:
        return f"veil of {self.user_id}"


class ForgottenPassage(Owned):
    """A part of a message, from character `start` up to `end`, of which nothing is ever made again.

    The message stays as it was said; its summary and its memories are written without the passage.
    """

    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="forgotten")
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()

    class Meta:
        db_table = "conversations_forgotten_passages"
        constraints = [
            models.UniqueConstraint(
                fields=["message", "start", "end"], name="one_row_a_forgotten_passage"
            ),
            models.CheckConstraint(
                condition=models.Q(end__gt=models.F("start")), name="forgotten_passage_has_length"
            ),
        ]

    def __str__(self) -> str:
        return f"forgotten passage of {self.message_id}"


class ToolCall(Owned):
    """What MIRA asked of a tool in a turn, and what came back. The answer's content names it."""

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="tool_calls")
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=50)
    input = models.JSONField()
    result = models.TextField()
    compact_result = models.TextField(
        blank=True, default="", help_text="What later prompts carry of a long result."
    )
    is_error = models.BooleanField()
    summary = models.CharField(max_length=120, help_text="The quiet line that the person sees.")
    called_at = models.DateTimeField()

    class Meta:
        db_table = "conversations_tool_calls"
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["turn", "position"], name="one_call_a_position")
        ]

    def __str__(self) -> str:
        return f"call of {self.name} in turn {self.turn_id}"


class SurfacedMemory(Owned):
    """A memory that was in front of MIRA while she answered a turn."""

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="surfaced")
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="+")
    rank = models.PositiveSmallIntegerField()
    score = models.FloatField()
    why = models.CharField(max_length=300)
    parts = models.JSONField(
        default=dict, blank=True, help_text="Path, phrase and what the score is made of."
    )

    class Meta:
        db_table = "conversations_surfaced"
        ordering = ["rank"]
        verbose_name_plural = "surfaced memories"
        constraints = [
            models.UniqueConstraint(fields=["turn", "memory"], name="surfaced_once_a_turn")
        ]

    def __str__(self) -> str:
        return f"memory {self.memory_id} in turn {self.turn_id}"
