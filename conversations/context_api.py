"""What MIRA saw in a turn, over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations import context_selectors, presenting
from conversations.context_selectors import Seen, Spent
from conversations.models import Observation, SubcorticalRecord
from mira_site.accounts.types import UserRequest

SLOTS = ("constant", "segment", "hud")


class SeenSectionOut(serializers.Serializer):
    name = serializers.CharField()
    slot = serializers.ChoiceField(
        choices=SLOTS, help_text="constant: always the same; segment: for its part; hud: for once."
    )
    tokens = serializers.IntegerField(help_text="Our estimate.")
    text = serializers.CharField(
        allow_null=True, help_text="null: deleted since, because something in it was forgotten."
    )


class SeenMessageOut(serializers.Serializer):
    id = serializers.UUIDField()
    role = serializers.CharField()
    created_at = serializers.DateTimeField()


class SeenTokensOut(serializers.Serializer):
    estimated = serializers.IntegerField(help_text="The whole prompt, by our estimate.")
    counted = serializers.IntegerField(
        allow_null=True, help_text="The same as the provider counted it; null if it did not."
    )
    history = serializers.IntegerField()
    tools = serializers.IntegerField()


class SeenPromptOut(serializers.Serializer):
    composed_at = serializers.DateTimeField()
    effort = serializers.CharField(help_text="Empty: the model's own.")
    tokens = SeenTokensOut()
    sections = SeenSectionOut(many=True)
    tools = serializers.ListField(child=serializers.CharField())
    messages = SeenMessageOut(many=True)


class SubcorticalOut(serializers.Serializer):
    phrases = serializers.ListField(child=serializers.CharField())
    entities = serializers.ListField(child=serializers.CharField())
    offered = serializers.ListField(
        child=serializers.UUIDField(), help_text="Memories of the turn before that could stay."
    )
    kept = serializers.ListField(child=serializers.UUIDField())
    complexity = serializers.ChoiceField(choices=SubcorticalRecord.Complexity.choices)
    by = serializers.ChoiceField(choices=SubcorticalRecord.By.choices)
    reason = serializers.CharField(help_text="Why rules stood in for the model; else empty.")
    took_ms = serializers.IntegerField()


class ObservationOut(serializers.Serializer):
    id = serializers.UUIDField()
    action = serializers.ChoiceField(choices=Observation.Action.choices)
    severity = serializers.ChoiceField(choices=Observation.Severity.choices)
    failure = serializers.CharField()
    guidance = serializers.CharField()
    evidence = serializers.ListField(child=serializers.UUIDField(), help_text="Messages.")
    after_turn = serializers.IntegerField(help_text="Number of the turn it looked at last.")
    until_turn = serializers.IntegerField(help_text="Number of the last turn that it is for.")
    shown_count = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class BriefOut(serializers.Serializer):
    text = serializers.CharField()
    covered_from_at = serializers.DateTimeField()
    covered_to_at = serializers.DateTimeField()
    count = serializers.IntegerField()


class ActiveBriefOut(serializers.Serializer):
    message = serializers.UUIDField(help_text="The last one that the brief tells.")
    text = serializers.CharField()
    updated_at = serializers.DateTimeField()


class ActiveBriefAnswer(serializers.Serializer):
    brief = ActiveBriefOut(allow_null=True, help_text="null: all is still there word for word.")


class SpentOut(serializers.Serializer):
    job = serializers.CharField()
    model = serializers.CharField()
    calls = serializers.IntegerField()
    failed = serializers.IntegerField()
    input_tokens = serializers.IntegerField()
    cache_read_tokens = serializers.IntegerField()
    cache_write_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    cache_share = serializers.FloatField()
    cost = serializers.CharField(help_text="Dollars.")
    took_ms = serializers.IntegerField()


class ContextOut(serializers.Serializer):
    turn = serializers.UUIDField()
    number = serializers.IntegerField()
    segment = serializers.UUIDField()
    prompt = SeenPromptOut(
        allow_null=True,
        help_text="null: none was kept. No model was asked, the turn is off the record or not "
        "answered yet, or its segment came to rest more than 30 days ago.",
    )
    subcortical = SubcorticalOut(allow_null=True)
    advice = ObservationOut(many=True, help_text="In force in this turn.")
    past = ObservationOut(many=True, help_text="Other observations of the segment, newest first.")
    brief = BriefOut(allow_null=True, help_text="The segment's brief as it is now.")
    spent = SpentOut(many=True)
    cost = serializers.CharField(help_text="Dollars, of all jobs of the turn.")


class TurnContext(APIView):
    @extend_schema(operation_id="turns_context", responses=ContextOut)
    def get(self, request: UserRequest, turn_id: UUID) -> Response:
        """What MIRA saw when she answered: the prompt by sections, what stood around it, cost."""
        return Response(_presented(context_selectors.seen(request.user, turn_id)))


class ActiveBrief(APIView):
    @extend_schema(operation_id="brief", responses=ActiveBriefAnswer)
    def get(self, request: UserRequest) -> Response:
        """How the older messages of the part that is being talked in are told to MIRA."""
        found = context_selectors.active_brief(request.user)
        if found is None:
            return Response({"brief": None})
        brief, last_id = found
        told = {
            "message": str(last_id),
            "text": brief.text,
            "updated_at": presenting.iso(brief.updated_at),
        }
        return Response({"brief": told})


def _presented(seen: Seen) -> dict[str, Any]:
    return {
        "turn": str(seen.turn.pk),
        "number": seen.turn.number,
        "segment": str(seen.turn.segment_id),
        "prompt": _prompt(seen),
        "subcortical": _subcortical(seen.subcortical) if seen.subcortical else None,
        "advice": [_observation(row) for row in seen.advice],
        "past": [_observation(row) for row in seen.past],
        "brief": _brief(seen),
        "spent": [_spent(one) for one in seen.spent],
        "cost": str(seen.cost),
    }


def _prompt(seen: Seen) -> dict[str, Any] | None:
    composed = seen.composed
    if composed is None:
        return None
    return {
        "composed_at": presenting.iso(composed.composed_at),
        "effort": composed.effort,
        "tokens": {
            "estimated": composed.tokens,
            "counted": composed.counted_tokens or None,
            "history": composed.history_tokens,
            "tools": seen.tools_tokens,
        },
        "sections": [
            {"name": one.name, "slot": one.slot, "tokens": one.tokens, "text": one.text}
            for one in seen.sections
        ],
        "tools": composed.tools,
        "messages": [
            {"id": str(one.pk), "role": one.role, "created_at": presenting.iso(one.created_at)}
            for one in seen.messages
        ],
    }


def _subcortical(row: SubcorticalRecord) -> dict[str, Any]:
    return {
        "phrases": row.phrases,
        "entities": row.entities,
        "offered": row.offered_ids,
        "kept": row.kept_ids,
        "complexity": row.complexity,
        "by": row.by,
        "reason": row.reason,
        "took_ms": row.took_ms,
    }


def _observation(row: Observation) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "action": row.action,
        "severity": row.severity,
        "failure": row.failure,
        "guidance": row.guidance,
        "evidence": row.evidence_ids,
        "after_turn": row.turn_number,
        "until_turn": row.expires_after_turn,
        "shown_count": row.shown_count,
        "created_at": presenting.iso(row.created_at),
    }


def _brief(seen: Seen) -> dict[str, Any] | None:
    if seen.brief is None:
        return None
    return {
        "text": seen.brief.text,
        "covered_from_at": presenting.iso(seen.brief.covered_from_at),
        "covered_to_at": presenting.iso(seen.brief.covered_to_at),
        "count": seen.brief.count,
    }


def _spent(one: Spent) -> dict[str, Any]:
    return {
        "job": one.job,
        "model": one.model,
        "calls": one.calls,
        "failed": one.failed,
        "input_tokens": one.input_tokens,
        "cache_read_tokens": one.cache_read_tokens,
        "cache_write_tokens": one.cache_write_tokens,
        "output_tokens": one.output_tokens,
        "cache_share": round(one.cache_share, 4),
        "cost": str(one.cost),
        "took_ms": one.took_ms,
    }
