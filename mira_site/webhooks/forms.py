"""The form of the webhooks page."""

from __future__ import annotations

from typing import Any

from django import forms

from mira_site.webhooks.constants import URL_MAX_CHARS
from mira_site.webhooks.types import EVERYTHING, EventType

EVENT_CHOICES = [
    (EVERYTHING, "Everything but recalls"),
    (EventType.MEMORY_STORED.value, "A memory was stored"),
    (EventType.MEMORY_ARCHIVED.value, "A memory went to the archive"),
    (EventType.MEMORY_DELETED.value, "Memories were forgotten"),
    (EventType.MEMORY_EMBEDDING_FAILED.value, "A memory could not be embedded"),
    (EventType.CAUSAL_DETECTED.value, "A cause was found between memories"),
    (EventType.SEGMENT_COLLAPSED.value, "A stretch of conversation became memory"),
    (EventType.RECALL_COMPLETED.value, "Something was recalled (often)"),
]


class EndpointForm(forms.Form):
    url = forms.CharField(
        label="Address",
        max_length=URL_MAX_CHARS,
        widget=forms.URLInput(attrs={"placeholder": "https://", "autocomplete": "off"}),
        help_text="A public address over HTTPS that answers a POST with 2xx.",
    )
    events = forms.MultipleChoiceField(
        label="Hears of",
        choices=EVENT_CHOICES,
        initial=[EVERYTHING],
        widget=forms.CheckboxSelectMultiple,
    )

    def refuse(self, fields: dict[str, str], otherwise: str) -> None:
        """Show what the service objected to."""
        known: dict[str, Any] = {name: says for name, says in fields.items() if name in self.fields}
        for name, says in known.items():
            self.add_error(name, says)
        if not known:
            self.add_error(None, otherwise)
