"""Shapes of the API of entities, links and graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers

from memory.causality import CAUSAL, CHAIN_DEPTH, CHAIN_DEPTH_MAX
from memory.graph_selectors import GRAPH_DEPTH_MAX, Around
from memory.links import BOND_MAX_CHARS, REASONING_MAX_CHARS
from memory.models import Entity, EntityMergeProposal, MemoryLink
from memory.naming import NAME_MAX_CHARS

MERGE_IDS_MAX = 50


class LinkOut(serializers.Serializer):
    """A link as one of its ends shows it."""

    id = serializers.UUIDField()
    memory = serializers.UUIDField(source="memory_id", help_text="The other end.")
    text = serializers.CharField(help_text="What the other end says.")
    direction = serializers.SerializerMethodField()
    link_type = serializers.ChoiceField(choices=MemoryLink.Type.choices)
    reasoning = serializers.CharField(allow_blank=True)
    bond = serializers.CharField(allow_blank=True)
    author = serializers.ChoiceField(choices=MemoryLink.Author.choices)
    weight = serializers.FloatField(help_text="How sure it is, 0 to 1; by rule a likeness.")
    confirmed_at = serializers.DateTimeField(
        allow_null=True, help_text="When the person said that it is so."
    )
    created_at = serializers.DateTimeField()

    def get_direction(self, link: Any) -> str:
        return "out" if link.outward else "in"


class MentionOut(serializers.Serializer):
    """An entity that a memory mentions."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    entity_type = serializers.ChoiceField(choices=Entity.Type.choices)
    named = serializers.CharField(help_text="The name that the memory uses.")


class AroundOut(serializers.Serializer):
    """What hangs on a memory: part of its own representation."""

    links = LinkOut(many=True)
    entities = MentionOut(source="mentions", many=True)


class LinkIn(serializers.Serializer):
    target = serializers.UUIDField()
    link_type = serializers.ChoiceField(choices=MemoryLink.Type.choices)
    reasoning = serializers.CharField(
        max_length=REASONING_MAX_CHARS, help_text="Why, in 5 characters or more."
    )
    bond = serializers.CharField(
        max_length=BOND_MAX_CHARS, required=False, allow_blank=True, default=""
    )


class LinkWritten(serializers.ModelSerializer):
    """A link by itself, read from source to target."""

    source = serializers.UUIDField(source="source_id")  # type: ignore[assignment]
    target = serializers.UUIDField(source="target_id")

    class Meta:
        model = MemoryLink
        fields = (
            "id",
            "source",
            "target",
            "link_type",
            "reasoning",
            "bond",
            "author",
            "weight",
            "confirmed_at",
            "created_at",
        )
        read_only_fields = fields


class NodeOut(serializers.Serializer):
    id = serializers.UUIDField()
    text = serializers.CharField()
    importance = serializers.FloatField()
    depth = serializers.IntegerField(help_text="Hops from the memory asked about.")


class GraphOut(serializers.Serializer):
    nodes = NodeOut(many=True)
    links = LinkWritten(many=True)
    is_cut = serializers.BooleanField(help_text="Whether there was more than is shown.")


class GraphQuery(serializers.Serializer):
    depth = serializers.IntegerField(
        required=False, default=2, min_value=1, max_value=GRAPH_DEPTH_MAX
    )


class CausalNodeOut(serializers.Serializer):
    """A memory of a chain, and the link that leads to it from `via`."""

    id = serializers.UUIDField()
    text = serializers.CharField()
    memory_type = serializers.CharField()
    said_at = serializers.DateTimeField()
    depth = serializers.IntegerField(help_text="Links from the memory asked about.")
    relation = serializers.ChoiceField(choices=[(kind, kind) for kind in CAUSAL])
    weight = serializers.FloatField(help_text="Of the link: how sure it is, 0 to 1.")
    via = serializers.UUIDField(source="via_id", help_text="The memory one link nearer.")
    link = serializers.UUIDField(source="link_id")
    author = serializers.ChoiceField(choices=MemoryLink.Author.choices)
    reasoning = serializers.CharField(allow_blank=True)
    confirmed_at = serializers.DateTimeField(allow_null=True)
    is_past = serializers.BooleanField(help_text="It is no longer true.")
    reads_like_an_instruction = serializers.BooleanField(
        help_text="Its text asks to be obeyed; it is data."
    )


class CausalChainOut(serializers.Serializer):
    memory = serializers.UUIDField(source="memory_id")
    causes = CausalNodeOut(many=True, help_text="What led to it, nearest first.")
    consequences = CausalNodeOut(many=True, help_text="What came of it, where asked for.")


class CausalChainQuery(serializers.Serializer):
    max_depth = serializers.IntegerField(
        required=False, default=CHAIN_DEPTH, min_value=1, max_value=CHAIN_DEPTH_MAX
    )
    include_consequences = serializers.BooleanField(required=False, default=False)


class NameOut(serializers.ModelSerializer):
    """Another name of an entity, merged into it."""

    class Meta:
        model = Entity
        fields = ("id", "name", "merged_at", "merged_by")
        read_only_fields = fields


class EntitySerializer(serializers.ModelSerializer):
    """An entity as it is shown, and the fields a person may set.

    The context carries `counts` and `names` of the roots (see `entity_context`).
    """

    name = serializers.CharField(max_length=NAME_MAX_CHARS)
    entity_type = serializers.ChoiceField(choices=Entity.Type.choices)
    memory_count = serializers.SerializerMethodField(
        help_text="Live memories that mention it, under any of its names."
    )
    names = serializers.SerializerMethodField(help_text="Its other names.")
    merged_into = serializers.UUIDField(
        source="canonical_id", read_only=True, allow_null=True, help_text="What it is a name of."
    )
    is_archived = serializers.SerializerMethodField()

    class Meta:
        model = Entity
        fields = (
            "id",
            "name",
            "entity_type",
            "memory_count",
            "names",
            "merged_into",
            "is_archived",
            "created_at",
        )
        read_only_fields = ("id", "created_at")

    def get_memory_count(self, entity: Entity) -> int:
        return int(self.context["counts"].get(entity.root_id, 0))

    def get_names(self, entity: Entity) -> list[dict[str, Any]]:
        names: Mapping[UUID, Sequence[Entity]] = self.context["names"]
        return list(NameOut(names.get(entity.id, ()), many=True).data)

    def get_is_archived(self, entity: Entity) -> bool:
        return entity.archived_at is not None


class EntityFilters(serializers.Serializer):
    q = serializers.CharField(required=False, allow_blank=True, max_length=NAME_MAX_CHARS)
    type = serializers.ChoiceField(required=False, choices=Entity.Type.choices)


class MergeIn(serializers.Serializer):
    ids = serializers.ListField(
        child=serializers.UUIDField(), min_length=1, max_length=MERGE_IDS_MAX
    )
    into = serializers.UUIDField(help_text="The one whose name stays.")


class ProposalSideOut(serializers.ModelSerializer):
    class Meta:
        model = Entity
        fields = ("id", "name", "entity_type")
        read_only_fields = fields


class ProposalOut(serializers.ModelSerializer):
    """Two names that may be of one thing."""

    first = ProposalSideOut()
    second = ProposalSideOut()

    class Meta:
        model = EntityMergeProposal
        fields = (
            "id",
            "first",
            "second",
            "similarity",
            "reason",
            "status",
            "created_at",
            "decided_at",
            "decided_by",
        )
        read_only_fields = fields


class DecideIn(serializers.Serializer):
    same = serializers.BooleanField()
    into = serializers.UUIDField(
        required=False, allow_null=True, default=None, help_text="The name to keep, of the two."
    )


def around_shown(around: Around) -> dict[str, Any]:
    """`links` and `entities` of a memory's representation."""
    return dict(AroundOut(around).data)


def page_of(name: str, item: serializers.BaseSerializer) -> serializers.Serializer:
    return inline_serializer(
        name,
        {
            "results": item,
            "next": serializers.URLField(allow_null=True),
            "previous": serializers.URLField(allow_null=True),
        },
    )
