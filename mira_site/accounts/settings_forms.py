"""The forms of the settings pages."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms

from mira_site.accounts import zones
from mira_site.accounts.constants import EFFORTS, NAME_MAX, THEMES
from mira_site.accounts.languages import AS_WRITTEN, LANGUAGES
from mira_site.accounts.models import User
from mira_site.accounts.types import PersonSettings
from mira_site.llm import choices
from mira_site.llm.budget import CAP_MAX
from mira_site.llm.types import Tier

THEME_WORDS = {"system": "Like the device", "light": "Light", "dark": "Dark"}
EFFORT_WORDS = {
    "automatic": "As the question needs it",
    "low": "Low: quick and cheap",
    "medium": "Medium",
    "high": "High: thorough and slower",
}
QUIET_WORDS = {
    30: "30 minutes",
    45: "45 minutes",
    60: "1 hour",
    90: "1 ½ hours",
    120: "2 hours",
    180: "3 hours",
    240: "4 hours",
    360: "6 hours",
    480: "8 hours",
}
TIER_WORDS = {
    Tier.REPLY: "Answers",
    Tier.FAST: "Small questions in between",
    Tier.BACKGROUND: "Summaries and memories",
}


def _language(name: str, own: str) -> str:
    return name if own == name else f"{name} – {own}"


class YouForm(forms.Form):
    name = forms.CharField(
        label="Name",
        max_length=NAME_MAX,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "given-name"}),
        help_text="What I call you. Left empty, it is your username.",
    )
    language = forms.ChoiceField(
        label="Language of my answers",
        required=False,
        choices=[
            (AS_WRITTEN, "The one you write in"),
            *((code, _language(*names)) for code, names in LANGUAGES.items()),
        ],
        help_text="These pages exist in English only.",
    )
    timezone = forms.CharField(
        label="Time zone",
        max_length=64,
        widget=forms.TextInput(attrs={"list": "zones", "autocomplete": "off"}),
        help_text="Type a city: your days, dates and months are counted there.",
    )
    fixed_zone = forms.BooleanField(
        label="Keep this zone when my device says another", required=False
    )

    def clean_timezone(self) -> str:
        found = zones.find(self.cleaned_data["timezone"])
        if found is None:
            raise forms.ValidationError("I know no such zone. Choose one of the list.")
        return found

    def clean(self) -> dict[str, Any]:
        """Another zone than before is meant to stay: the chat page would set the device's again."""
        said, before = self.cleaned_data, self.initial
        is_another = said.get("timezone", before["timezone"]) != before["timezone"]
        if is_another and not before["fixed_zone"]:
            said["fixed_zone"] = True
        return said


class LooksForm(forms.Form):
    theme = forms.ChoiceField(
        label="Appearance",
        choices=[(name, THEME_WORDS[name]) for name in THEMES],
        widget=forms.RadioSelect,
    )


class ThinkingForm(forms.Form):
    effort = forms.ChoiceField(
        label="Effort",
        choices=[(name, EFFORT_WORDS[name]) for name in EFFORTS],
        help_text="How hard I try before I answer. More effort costs more.",
    )
    observer = forms.BooleanField(
        label="A second pair of eyes looks at the talk every few turns", required=False
    )
    quiet_minutes = forms.TypedChoiceField(
        label="Quiet time",
        coerce=int,
        choices=list(QUIET_WORDS.items()),
        help_text="After so long without a message, a stretch of talk becomes memory.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        quiet = self.get_initial_for_field(self.fields["quiet_minutes"], "quiet_minutes")
        if quiet not in QUIET_WORDS:  # set over the API
            words = {**QUIET_WORDS, quiet: f"{quiet} minutes"}
            self.fields["quiet_minutes"].choices = sorted(words.items())  # type: ignore[attr-defined]
        for tier in Tier:
            if models := choices.allowed(tier):
                own, *others = models
                self.fields[f"model_{tier.value}"] = forms.ChoiceField(
                    label=f"Model: {TIER_WORDS[tier].lower()}",
                    choices=[(own, f"{own} (this server’s own)"), *((one, one) for one in others)],
                    initial=own,
                )

    def chosen(self) -> dict[str, object]:
        """What was said, as settings."""
        said = dict(self.cleaned_data)
        models = {}
        for tier in Tier:
            model = said.pop(f"model_{tier.value}", None)
            if model is not None:  # the server's own is no choice: it may change
                models[tier.value] = "" if model == choices.default_model(tier) else model
        return {**said, "models": models} if models else said


class KeyForm(forms.Form):
    key = forms.CharField(
        label="Key",
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


class TokenForm(forms.Form):
    name = forms.CharField(
        label="What is it for?",
        max_length=NAME_MAX,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class CapForm(forms.Form):
    monthly_cap = forms.DecimalField(
        label="Monthly cap in dollars",
        required=False,
        min_value=Decimal("0.01"),
        max_value=CAP_MAX,
        decimal_places=2,
        widget=forms.NumberInput(attrs={"inputmode": "decimal", "step": "0.01"}),
        help_text="Left empty, there is none.",
    )


def initial(user: User, now: PersonSettings) -> dict[str, object]:
    """What the forms show at first."""
    return {
        "name": user.first_name,
        "language": now.language,
        "timezone": user.timezone,
        "fixed_zone": now.fixed_zone,
        "theme": now.theme,
        "effort": now.effort,
        "observer": now.observer,
        "quiet_minutes": now.quiet_minutes,
        **{f"model_{tier}": model for tier, model in now.models.items()},
    }
