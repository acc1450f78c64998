"""Shapes of the API: what may come in, and, for the schema, what presenting.py sends out."""

from __future__ import annotations

from rest_framework import serializers

from conversations.models import Message, Segment, Turn


class ChatRequest(serializers.Serializer):
    message = serializers.CharField(trim_whitespace=False, allow_blank=True)
    client_id = serializers.UUIDField(required=False)
    attachments = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        help_text="Ids of files from POST files/, each sent once; then the message may be empty.",
    )
    off_record = serializers.BooleanField(
        required=False, help_text="Draw the veil before this message, if it is not drawn."
    )


class VeilOut(serializers.Serializer):
    is_drawn = serializers.BooleanField()
    drawn_at = serializers.DateTimeField(allow_null=True)
    lifts_at = serializers.DateTimeField(
        allow_null=True, help_text="By itself, an hour after the last message off the record."
    )


class MessagesQuery(serializers.Serializer):
    before = serializers.IntegerField(required=False, min_value=0)
    after = serializers.IntegerField(required=False, min_value=0)
    at = serializers.CharField(
        required=False,
        help_text="The page around this: a message's id, or an ISO 8601 date or time, on your own "
        "clock; then around the first message said from then on.",
    )
    page_size = serializers.IntegerField(required=False, min_value=1, max_value=200)


class MessageChange(serializers.Serializer):
    text = serializers.CharField(trim_whitespace=False, allow_blank=True)
    what_came_of_it = serializers.ChoiceField(
        required=False,
        choices=("derive", "forget", "keep"),
        help_text="Memories that rest on it alone: derive anew, forget and derive anew, keep.",
    )


class MessageDeletion(serializers.Serializer):
    what_came_of_it = serializers.ChoiceField(
        required=False,
        default=None,
        choices=("forget", "keep"),
        help_text="Memories that rest on it alone. Needed where there are any.",
    )
    with_answer = serializers.BooleanField(required=False, default=True)


class AnswerOut(serializers.Serializer):
    id = serializers.UUIDField()


class SearchQuery(serializers.Serializer):
    q = serializers.CharField(min_length=2, max_length=300)


class SegmentLabel(serializers.Serializer):
    id = serializers.UUIDField()
    status = serializers.ChoiceField(choices=Segment.Status.choices)
    title = serializers.CharField()
    opened_at = serializers.DateTimeField()


class SourceOut(serializers.Serializer):
    message = serializers.UUIDField()
    sentence = serializers.CharField()
    said_at = serializers.DateTimeField()

    class Meta:
        ref_name = "SurfacedSource"


class SurfacedOut(serializers.Serializer):
    id = serializers.UUIDField()
    text = serializers.CharField()
    why = serializers.CharField()
    parts = serializers.DictField(
        help_text="Path, phrase, and the parts of the score: similarity, overlap, relevance, "
        "importance; only what is not empty."
    )
    created_at = serializers.DateTimeField()
    source = SourceOut(allow_null=True)  # type: ignore[assignment]
    judged = serializers.CharField(
        allow_null=True, help_text="right, outdated, wrong, never_mention, archived; null: open."
    )


class ToolUsedOut(serializers.Serializer):
    call = serializers.UUIDField()
    name = serializers.CharField()
    ok = serializers.BooleanField()
    summary = serializers.CharField()


class FileUpload(serializers.Serializer):
    file = serializers.FileField(help_text="At most 20 MB; the type is found by content.")


class FileOut(serializers.Serializer):
    id = serializers.UUIDField()
    name = serializers.CharField()
    media_type = serializers.CharField()
    size = serializers.IntegerField(help_text="Bytes that are kept: pictures are made smaller.")
    width = serializers.IntegerField(allow_null=True)
    height = serializers.IntegerField(allow_null=True)
    pages = serializers.IntegerField(allow_null=True)
    url = serializers.CharField(help_text="Where its content is.")


class ErrorOut(serializers.Serializer):
    code = serializers.CharField()
    detail = serializers.CharField()
    retryable = serializers.BooleanField()


class MessageOut(serializers.Serializer):
    id = serializers.UUIDField()
    position = serializers.IntegerField(help_text="Its place in the thread; grows, with gaps.")
    role = serializers.ChoiceField(choices=Message.Role.choices)
    text = serializers.CharField()
    content = serializers.ListField(child=serializers.DictField())
    created_at = serializers.DateTimeField()
    edited_at = serializers.DateTimeField(allow_null=True)
    segment = SegmentLabel()
    turn = serializers.UUIDField(allow_null=True)
    turn_status = serializers.ChoiceField(choices=Turn.Status.choices, allow_null=True)
    error = ErrorOut(allow_null=True, help_text="Why the turn has no whole answer.")
    is_partial = serializers.BooleanField()
    is_cut = serializers.BooleanField(
        help_text="The answer met the limit of its length; see turns/{id}/continue/."
    )
    is_quoted = serializers.BooleanField(
        help_text="Written without a model. While it is the newest, turns/{id}/retry/ asks one."
    )
    is_off_record = serializers.BooleanField()
    surfaced = SurfacedOut(many=True)
    tools = ToolUsedOut(many=True)
    attachments = FileOut(many=True)


class MessagePage(serializers.Serializer):
    results = MessageOut(many=True)
    at = serializers.UUIDField(allow_null=True, help_text="The message that `at` asked for.")
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)


class FoundOut(serializers.Serializer):
    message = MessageOut()
    highlight = serializers.CharField(help_text="The text around the hit; **hits** are marked.")


class FoundSegmentOut(SegmentLabel):
    precis = serializers.CharField()


class SearchOut(serializers.Serializer):
    results = FoundOut(many=True)
    segments = FoundSegmentOut(many=True)


class UsageOut(serializers.Serializer):
    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    cache_read_tokens = serializers.IntegerField()
    cache_write_tokens = serializers.IntegerField()


class TurnOut(serializers.Serializer):
    id = serializers.UUIDField()
    status = serializers.ChoiceField(choices=Turn.Status.choices)
    client_id = serializers.UUIDField()
    attempt = serializers.IntegerField()
    message = MessageOut(allow_null=True)
    reply = MessageOut(allow_null=True)
    surfaced = SurfacedOut(many=True)
    usage = UsageOut()
    model = serializers.CharField()
    effort = serializers.CharField(help_text="low, medium or high; empty: the model's own.")
    stop_reason = serializers.CharField(help_text="Why the model ended, in its words.")
    error = ErrorOut(allow_null=True)
    created_at = serializers.DateTimeField()


class ReplyOut(serializers.Serializer):
    id = serializers.UUIDField()
    text = serializers.CharField()
    created_at = serializers.DateTimeField()


class ChatOut(serializers.Serializer):
    turn = serializers.UUIDField()
    status = serializers.ChoiceField(choices=Turn.Status.choices)
    reply = ReplyOut(allow_null=True)
    surfaced = SurfacedOut(many=True)
    usage = UsageOut()
    error = ErrorOut(allow_null=True)


class SegmentOut(SegmentLabel):
    precis = serializers.CharField()
    trace = serializers.CharField()
    complexity = serializers.FloatField(allow_null=True)
    last_message_at = serializers.DateTimeField()
    collapsed_at = serializers.DateTimeField(allow_null=True)
    collapse_asked_at = serializers.DateTimeField(
        allow_null=True, help_text="You wished to wrap it up; done once the answer is there."
    )
    reopenable_until = serializers.DateTimeField(
        allow_null=True, help_text="Until then POST reopen/ takes its collapse back."
    )
    message_count = serializers.IntegerField(allow_null=True)


class MadeMemoryOut(serializers.Serializer):
    id = serializers.UUIDField()
    text = serializers.CharField()


class SegmentWhole(SegmentOut):
    memories = MadeMemoryOut(many=True)


class RestingMemoryOut(serializers.Serializer):
    id = serializers.UUIDField()
    text = serializers.CharField()


class CameOfOut(serializers.Serializer):
    answer = AnswerOut(allow_null=True)
    memories = RestingMemoryOut(many=True)
    memories_with_other_sources = RestingMemoryOut(many=True)


class ForgetReceiptOut(serializers.Serializer):
    id = serializers.UUIDField()
    requested_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    counts = serializers.DictField(child=serializers.IntegerField())


class MessageDeleted(serializers.Serializer):
    deleted = serializers.ListField(child=serializers.UUIDField())
    forgotten = serializers.IntegerField()
    kept = serializers.IntegerField()
    receipt = ForgetReceiptOut(allow_null=True)
