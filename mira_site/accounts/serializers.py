"""The API's shapes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mira_site.accounts.constants import THEMES


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


class TokenSerializer(serializers.Serializer):
    token = serializers.CharField(help_text="Send it as `Authorization: Token …`.")
    expires_at = serializers.DateTimeField()


class SettingsSerializer(KnownFieldsOnly):
    """What the person chose."""

    theme = serializers.ChoiceField(choices=THEMES)


class MeSerializer(serializers.Serializer):
    id = serializers.UUIDField()
    username = serializers.CharField()
    email = serializers.EmailField(allow_blank=True)
    timezone = serializers.CharField(help_text="IANA name.")
    use_days = serializers.IntegerField(help_text="Local days with at least one message.")
    created_at = serializers.DateTimeField()
    settings = SettingsSerializer()


class MeChangesSerializer(KnownFieldsOnly):
    """Only what is given changes."""

    timezone = serializers.CharField(max_length=64, required=False, help_text="IANA name.")
    settings = SettingsSerializer(required=False, partial=True)
