"""Forms of the memory pages."""

from __future__ import annotations

from typing import Any

from django import forms

from memory.constants import MEMORY_TYPES, PLACE_MAX_CHARS, TEXT_MAX_CHARS, TEXT_MIN_CHARS
from memory.models import Memory

_MOMENT = "%Y-%m-%dT%H:%M"  # what an input of this type sends and takes
EDITABLE = ("text", "memory_type", "happens_at", "expires_at", "wing", "room")


def _moment(label: str) -> forms.DateTimeField:
    return forms.DateTimeField(
        label=label,
        required=False,
        input_formats=[_MOMENT, "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"],
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format=_MOMENT),
    )


class MemoryForm(forms.Form):
    """One memory; times are those of the active time zone."""

    text = forms.CharField(
        label="What I remember",
        min_length=TEXT_MIN_CHARS,
        max_length=TEXT_MAX_CHARS,
        widget=forms.Textarea(attrs={"rows": 3, "autofocus": True}),
    )
    memory_type = forms.ChoiceField(
        label="Kind", choices=[(kind, kind.replace("_", " ")) for kind in MEMORY_TYPES]
    )
    happens_at = _moment("Happens on")
    expires_at = _moment("True until")
    wing = forms.CharField(label="Wing", required=False, max_length=PLACE_MAX_CHARS)
    room = forms.CharField(label="Room", required=False, max_length=PLACE_MAX_CHARS)

    @classmethod
    def of(cls, memory: Memory, posted: Any = None) -> MemoryForm:
        """The form filled with the memory; ids of its fields differ from those of other rows."""
        initial = {name: getattr(memory, name) for name in EDITABLE}
        return cls(posted, initial=initial, auto_id=f"memory-{memory.short_id}-%s", label_suffix="")

    def changes(self) -> dict[str, Any]:
        """Of a valid form: the fields that differ from the memory."""
        return {name: self.cleaned_data[name] for name in self.changed_data}


class FilterForm(forms.Form):
    """What the list page is asked for; anything else is as if it were not given."""

    q = forms.CharField(required=False, max_length=300)
    archived = forms.BooleanField(required=False)
    after = forms.CharField(required=False, max_length=100)

    def asked(self) -> dict[str, Any]:
        self.is_valid()
        given = self.cleaned_data
        return {
            "q": given.get("q", ""),
            "archived": given.get("archived", False),
            "after": given.get("after", ""),
        }
