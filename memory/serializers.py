"""Shapes of the memory API."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from functools import cache, cached_property
from operator import attrgetter
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field, inline_serializer
from rest_framework import serializers

from memory import dates, states
from memory.constants import (
    BUDGET_TOKENS,
    BUDGET_TOKENS_MAX,
    BUDGET_TOKENS_MIN,
    FALLBACK_WINGS_MAX,
    MEMORY_TYPES,
    PLACE_MAX_CHARS,
    QUERY_MAX_CHARS,
    QUESTION_MAX_CHARS,
    RECALL_LIMIT_MAX,
    TEXT_LENGTH,
    TEXT_MIN_CHARS,
    VERBATIM_MAX_CHARS,
)
from memory.fingerprint_personal import PERSONAL
from memory.graph_selectors import Around
from memory.graph_serializers import LinkOut, MentionOut
from memory.models import Fingerprint, ForgetReceipt, Memory, Stakes, Trust
from memory.types import Mode

QUARANTINED = "quarantined"
SHOWN_STATES = ("active", "archived", "past", QUARANTINED, "muted")
STATES_ASKED_FOR = (*SHOWN_STATES, "faded")


class SourceMessageOut(serializers.Serializer):
    id = serializers.UUIDField()
    sentence = serializers.CharField()
    span = serializers.CharField(
        allow_blank=True, help_text="The message around the sentence, as it was said."
    )
    said_at = serializers.DateTimeField()


class SourceOut(serializers.Serializer):
    segment = serializers.UUIDField(allow_null=True)
    messages = SourceMessageOut(many=True)


class RejectedOut(serializers.Serializer):
    name = serializers.CharField()
    note = serializers.CharField(required=False)


class PersonalFactOut(serializers.Serializer):
    key = serializers.ChoiceField(choices=PERSONAL)
    value = serializers.CharField()


class FingerprintOut(serializers.Serializer):
    """What a memory says, field by field; a field it says nothing of is left out."""

    type = serializers.CharField(help_text="That of the memory.")
    date = serializers.DateField()
    entities = serializers.ListField(child=serializers.CharField(), required=False)
    subjects = serializers.ListField(child=serializers.CharField(), required=False)
    decision = serializers.CharField(required=False)
    rejected = RejectedOut(many=True, required=False)
    reasons = serializers.ListField(child=serializers.CharField(), required=False)
    validated_by = serializers.CharField(required=False)
    assignee = serializers.CharField(required=False)
    deadline = serializers.CharField(required=False)
    facts = PersonalFactOut(many=True, required=False)
    fact_count = serializers.IntegerField()
    author = serializers.ChoiceField(choices=Fingerprint.Author.choices)


class MemorySerializer(serializers.ModelSerializer):
    """A memory as it is shown, and the fields a person may set.

    To show links and entities the context carries `around`; see graph_selectors.around.
    """

    text = serializers.CharField(
        min_length=TEXT_MIN_CHARS,
        max_length=VERBATIM_MAX_CHARS,
        error_messages={"min_length": TEXT_LENGTH, "max_length": TEXT_LENGTH},
    )
    memory_type = serializers.ChoiceField(
        choices=MEMORY_TYPES, required=False, help_text="Left out: the text decides."
    )
    wing = serializers.CharField(max_length=PLACE_MAX_CHARS, allow_blank=True, required=False)
    room = serializers.CharField(max_length=PLACE_MAX_CHARS, allow_blank=True, required=False)
    importance = serializers.FloatField(min_value=0, max_value=1, required=False, allow_null=True)
    is_archived = serializers.SerializerMethodField()
    state = serializers.SerializerMethodField()
    trust = serializers.SerializerMethodField()
    stakes = serializers.SerializerMethodField()
    source = serializers.SerializerMethodField()  # type: ignore[assignment]
    fingerprint = serializers.SerializerMethodField()
    links = serializers.SerializerMethodField()
    entities = serializers.SerializerMethodField()

    class Meta:
        model = Memory
        fields = (
            "id",
            "text",
            "wing",
            "room",
            "memory_type",
            "importance",
            "happens_at",
            "expires_at",
            "valid_from",
            "valid_until",
            "trust",
            "stakes",
            "state",
            "is_archived",
            "archived_at",
            "created_at",
            "updated_at",
            "source",
            "fingerprint",
            "links",
            "entities",
        )
        read_only_fields = (
            "id",
            "valid_from",
            "valid_until",
            "archived_at",
            "created_at",
            "updated_at",
        )

    def get_is_archived(self, memory: Memory) -> bool:
        return memory.archived_at is not None

    @extend_schema_field(serializers.ChoiceField(choices=SHOWN_STATES))
    def get_state(self, memory: Memory) -> str:
        """Archived before quarantined, muted and past; active if it may come up."""
        state = states.of_memory(memory, now=timezone.now())
        return QUARANTINED if state == "held_back" else state

    @extend_schema_field(serializers.ChoiceField(choices=[one.name.lower() for one in Trust]))
    def get_trust(self, memory: Memory) -> str:
        """Whose word it rests on: said by the person, inferred, told by a tool, read outside."""
        return Trust(memory.trust).name.lower()

    @extend_schema_field(serializers.ChoiceField(choices=[one.name.lower() for one in Stakes]))
    def get_stakes(self, memory: Memory) -> str:
        """What it would cost to have forgotten it."""
        return Stakes(memory.stakes).name.lower()

    @extend_schema_field(SourceOut)
    def get_source(self, memory: Memory) -> dict[str, Any]:
        """Where it was said: the segment it was made of, and every message that says it."""
        messages = [
            {
                "id": str(source.message_id),
                "sentence": source.sentence,
                "span": source.span,
                "said_at": serializers.DateTimeField().to_representation(source.said_at),
            }
            for source in memory.sources.all()
        ]
        segment = memory.source_segment_id
        return {"segment": str(segment) if segment else None, "messages": messages}

    @extend_schema_field(FingerprintOut(allow_null=True))
    def get_fingerprint(self, memory: Memory) -> dict[str, Any] | None:
        """What it says, field by field; null for one that was stored before there were any."""
        row: Fingerprint | None = getattr(memory, "fingerprint", None)
        if row is None:
            return None
        return {**json.loads(row.canonical), "fact_count": row.fact_count, "author": row.author}

    @extend_schema_field(LinkOut(many=True))
    def get_links(self, memory: Memory) -> list[dict[str, Any]]:
        """To and from other memories that may come up, even as past."""
        return list(LinkOut(self._around(memory).links, many=True).data)

    @extend_schema_field(MentionOut(many=True))
    def get_entities(self, memory: Memory) -> list[dict[str, Any]]:
        """Whom and what it mentions."""
        return list(MentionOut(self._around(memory).mentions, many=True).data)

    def _around(self, memory: Memory) -> Around:
        around: Around = self.context["around"][memory.id]
        return around


class MomentField(serializers.DateTimeField):
    """A time, or a date in the person's zone, which stands for its first or its last moment."""

    def __init__(self, *, is_end: bool = False, **kwargs: Any) -> None:
        self.is_end = is_end
        super().__init__(**kwargs)

    def to_internal_value(self, value: Any) -> datetime:
        zone: ZoneInfo = self.context["zone"]
        try:
            on = date.fromisoformat(str(value).strip())
        except ValueError:
            return super().to_internal_value(value)
        return dates.end_of(on, zone) if self.is_end else dates.start_of(on, zone)

    def default_timezone(self) -> ZoneInfo:
        zone: ZoneInfo = self.context["zone"]
        return zone


class MemoryFilters(serializers.Serializer):
    q = serializers.CharField(required=False, max_length=QUERY_MAX_CHARS, allow_blank=True)
    archived = serializers.BooleanField(required=False, allow_null=True, default=False)
    state = serializers.ChoiceField(
        required=False,
        choices=STATES_ASKED_FOR,
        help_text="Takes the place of `archived`; faded: by itself, in the last seven days.",
    )
    wing = serializers.CharField(required=False, max_length=PLACE_MAX_CHARS, allow_blank=True)
    room = serializers.CharField(required=False, max_length=PLACE_MAX_CHARS, allow_blank=True)
    type = serializers.ChoiceField(required=False, choices=MEMORY_TYPES)
    entity = serializers.UUIDField(
        required=False, help_text="Only those that mention it, under any of its names."
    )
    since = MomentField(
        required=False, help_text="Stored at or after; a date means its first moment."
    )
    until = MomentField(
        is_end=True, required=False, help_text="Stored at or before; a date means its last moment."
    )


class ArchiveRequest(serializers.Serializer):
    reason = serializers.CharField(required=False, max_length=40, default="by hand")


OUT_OF_RANGE = f"Give a budget from {BUDGET_TOKENS_MIN} to {BUDGET_TOKENS_MAX:,} tokens."


class RecallRequest(serializers.Serializer):
    query = serializers.CharField(max_length=QUESTION_MAX_CHARS)
    budget = serializers.IntegerField(
        required=False,
        default=BUDGET_TOKENS,
        min_value=BUDGET_TOKENS_MIN,
        max_value=BUDGET_TOKENS_MAX,
        error_messages=dict.fromkeys(("min_value", "max_value"), OUT_OF_RANGE),
        help_text="Tokens that the context may take, frames and all.",
    )
    wing = serializers.CharField(
        required=False, max_length=PLACE_MAX_CHARS, help_text="Only of this wing; case is free."
    )
    room = serializers.CharField(
        required=False, max_length=PLACE_MAX_CHARS, help_text="Only of this room; case is free."
    )
    fallback_wings = serializers.ListField(
        child=serializers.CharField(max_length=PLACE_MAX_CHARS),
        required=False,
        default=list,
        max_length=FALLBACK_WINGS_MAX,
        help_text="Tried in this order where the wing holds nothing good enough.",
    )
    limit = serializers.IntegerField(
        required=False,
        default=RECALL_LIMIT_MAX,
        min_value=1,
        max_value=RECALL_LIMIT_MAX,
        help_text="Memories at most.",
    )
    explain = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Tell also what each score is made of, what was left out and why, and how good"
        " the choice is.",
    )


PATHS = ("meaning", "words", "entity", "link", "kept")


class PlainOut(serializers.Serializer):
    """Attributes as they are. Of the thousand values of a recall DRF looks each up and converts it,
    which takes as long as the search."""

    @cached_property
    def _reads(self) -> dict[str, Callable[[Any], Any]]:
        return {name: _read(field) for name, field in self.fields.items()}

    def to_representation(self, instance: Any) -> dict[str, Any]:
        return {name: read(instance) for name, read in self._reads.items()}


def _read(field: serializers.Field) -> Callable[[Any], Any]:
    given = attrgetter(str(field.source))
    if isinstance(field, PlainOut | serializers.UUIDField):
        return lambda instance: field.to_representation(given(instance))
    return given


class FactorsOut(PlainOut):
    """What spoke for a memory, each from 0 to 1; only relevance decides. See docs/contexts.md."""

    relevance = serializers.FloatField(help_text="How much it is wanted for the question.")
    density = serializers.FloatField(help_text="Facts for its length.")
    recency = serializers.FloatField(help_text="How little its kind of memory has aged.")
    overlap = serializers.FloatField(help_text="Likeness to what was chosen before it.")
    session = serializers.FloatField(help_text="How much its conversation is about the question.")
    causal = serializers.FloatField(help_text="1 if a cause or an effect of it is chosen too.")


class RecalledOut(PlainOut):
    id = serializers.UUIDField(source="memory.id")
    score = serializers.FloatField(source="memory.score")
    why = serializers.CharField(source="memory.why.text")
    path = serializers.ChoiceField(choices=PATHS, source="memory.why.path")
    factors = FactorsOut()


class RecallItemOut(RecalledOut):
    mode = serializers.ChoiceField(choices=[str(one) for one in Mode])
    text = serializers.CharField(
        source="shown",
        help_text="Its text, an excerpt, the line of its facts or a header: its mode.",
    )
    tokens = serializers.IntegerField(help_text="With its element, and the line of a day it opens.")
    wing = serializers.CharField(source="memory.wing")


class LeftOutOut(RecalledOut):
    reason = serializers.CharField()


class RecallOut(serializers.Serializer):
    context = serializers.CharField(  # type: ignore[assignment]
        source="text", help_text="Exactly what a model gets; empty if nothing came up."
    )
    tokens = serializers.IntegerField()
    budget = serializers.IntegerField(source="budget_tokens")
    items = RecallItemOut(many=True)
    fallback_wing = serializers.CharField(
        source="wing", help_text="The wing that was fallen back to; empty if none was."
    )
    is_degraded = serializers.BooleanField(help_text="Words alone decided: embeddings were away.")


class PartsOut(PlainOut):
    """What relevance and score are made of, each from 0 to 1. See docs/recall.md."""

    similarity = serializers.FloatField(help_text="Cosine to the nearest phrase.")
    overlap = serializers.FloatField(help_text="Share of a phrase's words, by their rarity.")
    late = serializers.FloatField(help_text="How well its words answer each word of the phrase.")
    session = serializers.FloatField(help_text="How much its conversation is about the phrase.")
    month = serializers.FloatField(help_text="Said in the month that is named.")
    other_speaker = serializers.FloatField(help_text="1: another than the one named says it.")
    asks = serializers.FloatField(help_text="1: it is a question itself.")
    particular = serializers.FloatField(help_text="1: it names somebody or something.")
    named = serializers.FloatField(help_text="1: it mentions what is named, by another word.")
    relevance = serializers.FloatField(help_text="How likely it is needed, of all of these.")
    importance = serializers.FloatField(help_text="Its own; a fifth of the score hangs on it.")


class ExplainedItemOut(RecallItemOut):
    gain = serializers.FloatField(help_text="What it added to the value of the context.")
    parts = PartsOut(source="memory.why.parts")


class ExplainedLeftOutOut(LeftOutOut):
    parts = PartsOut(source="memory.why.parts")


class ExplainedRecallOut(RecallOut):
    items = ExplainedItemOut(many=True)
    left_out = ExplainedLeftOutOut(many=True)
    allocation_quality = serializers.FloatField(
        source="quality", help_text="Value of the choice as a share of what none can exceed."
    )


@cache
def memory_page() -> serializers.Serializer:
    return inline_serializer(
        "MemoryPage",
        {
            "results": MemorySerializer(many=True),
            "next": serializers.URLField(allow_null=True),
            "previous": serializers.URLField(allow_null=True),
        },
    )


class ReceiptSerializer(serializers.ModelSerializer):
    """Counts of what was touched, by kind; empty `finished_at` while texts are written anew."""

    counts = serializers.DictField(child=serializers.IntegerField())

    class Meta:
        model = ForgetReceipt
        fields = ("id", "requested_at", "finished_at", "counts")
