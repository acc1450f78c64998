"""The API's shapes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rest_framework import serializers

from mira_site.accounts.constants import (
    EFFORTS,
    NAME_MAX,
    QUIET_MINUTES_MAX,
    QUIET_MINUTES_MIN,
    THEMES,
)
from mira_site.accounts.languages import LANGUAGES
from mira_site.llm import choices
from mira_site.llm.budget import CAP_MAX
from mira_site.llm.types import Tier


class KnownFieldsOnly(serializers.Serializer):
    """Refuses fields it does not know: a typing error must not look like success."""

    def to_internal_value(self, data: Any) -> Any:
        unknown = set(data) - set(self.fields) if isinstance(data, dict) else set()
        if unknown:
            raise serializers.ValidationError(
                {name: ["This cannot be set here."] for name in sorted(unknown)}
            )
        return super().to_internal_value(data)


class TokenRequestSerializer(serializers.Serializer):
    username = serializers.CharField(max_length=254, help_text="Username or e-mail address.")
    password = serializers.CharField(
        max_length=1000, trim_whitespace=False, style={"input_type": "password"}
    )
    name = serializers.CharField(
        max_length=NAME_MAX, required=False, help_text="What the token is for."
    )


class TokenSerializer(serializers.Serializer):
    token = serializers.CharField(help_text="Send it as `Authorization: Token …`.")
    expires_at = serializers.DateTimeField()


class ModelsSerializer(KnownFieldsOnly):
    """The model chosen for a tier; a tier that is left out is answered by the server's own."""

    reply = serializers.CharField(required=False, allow_blank=True, max_length=100)
    fast = serializers.CharField(required=False, allow_blank=True, max_length=100)
    background = serializers.CharField(required=False, allow_blank=True, max_length=100)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        wrong = {
            name: ["This model cannot be chosen here."]
            for name, model in attrs.items()
            if model and model not in choices.allowed(Tier(name))
        }
        if wrong:
            raise serializers.ValidationError(wrong)
        return attrs


class SettingsSerializer(KnownFieldsOnly):
    """What the person chose."""

    theme = serializers.ChoiceField(choices=THEMES)
    effort = serializers.ChoiceField(
        choices=EFFORTS, help_text="How hard the model that answers shall try."
    )
    observer = serializers.BooleanField(
        help_text="Whether a second pair of eyes looks at the talk every few turns."
    )
    quiet_minutes = serializers.IntegerField(
        min_value=QUIET_MINUTES_MIN,
        max_value=QUIET_MINUTES_MAX,
        help_text="Minutes without a message, after which a stretch of talk becomes memory.",
    )
    fixed_zone = serializers.BooleanField(
        help_text="The time zone stays as it was set, whatever the device says."
    )
    language = serializers.ChoiceField(
        choices=[*LANGUAGES],
        allow_blank=True,
        help_text="In which answers come; empty is that of the message.",
    )
    monthly_cap = serializers.DecimalField(
        max_digits=8,
        decimal_places=2,
        min_value=Decimal("0.01"),
        max_value=CAP_MAX,
        allow_null=True,
        help_text="Dollars that models may cost in a month; null is no cap.",
    )
    models = ModelsSerializer(
        help_text="Models chosen by tier, where the server allows; empty is the server's own."
    )


class SettingsChangesSerializer(SettingsSerializer):
    """Only what is given changes."""

    def get_fields(self) -> dict[str, serializers.Field]:
        fields: dict[str, serializers.Field] = super().get_fields()
        for field in fields.values():
            field.required = False
        return fields


class MeSerializer(serializers.Serializer):
    id = serializers.UUIDField()
    username = serializers.CharField()
    name = serializers.CharField(help_text="What MIRA calls the person, if not the username.")
    email = serializers.EmailField(allow_blank=True)
    timezone = serializers.CharField(help_text="IANA name.")
    use_days = serializers.IntegerField(help_text="Local days with at least one message.")
    created_at = serializers.DateTimeField()
    settings = SettingsSerializer()


class MeChangesSerializer(KnownFieldsOnly):
    """Only what is given changes."""

    name = serializers.CharField(max_length=NAME_MAX, required=False, allow_blank=True)
    timezone = serializers.CharField(max_length=64, required=False, help_text="IANA name.")
    settings = SettingsChangesSerializer(required=False)


class SumsSerializer(serializers.Serializer):
    calls = serializers.IntegerField()
    input_tokens = serializers.IntegerField(help_text="Neither read from the cache nor put there.")
    output_tokens = serializers.IntegerField()
    cache_read_tokens = serializers.IntegerField()
    cache_write_tokens = serializers.IntegerField()
    cache_share = serializers.FloatField(help_text="Part of the prompts read from the cache, 0-1.")
    cost = serializers.DecimalField(max_digits=14, decimal_places=6, help_text="Dollars.")


class MonthSumsSerializer(SumsSerializer):
    month = serializers.CharField(help_text="Like 2026-11, in the person's zone.")


class NamedSumsSerializer(SumsSerializer):
    name = serializers.CharField()


class BudgetSerializer(serializers.Serializer):
    cap = serializers.DecimalField(max_digits=8, decimal_places=2, allow_null=True)
    spent = serializers.DecimalField(max_digits=14, decimal_places=6)
    is_near = serializers.BooleanField(help_text="At least 80 % of the cap are spent.")
    is_reached = serializers.BooleanField(help_text="No model is asked before it resets.")
    resets_at = serializers.DateTimeField()


class UsageSerializer(serializers.Serializer):
    """The person's calls to models: all months, and one of them by job and by model."""

    budget = BudgetSerializer(help_text="The current month.")
    months = MonthSumsSerializer(many=True, help_text="Newest first.")
    month = serializers.CharField(help_text="The one that `jobs` and `models` are of.")
    jobs = NamedSumsSerializer(many=True, help_text="Dearest first.")
    models = NamedSumsSerializer(many=True, help_text="Dearest first.")
