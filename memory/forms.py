"""Forms of the memory pages."""

from __future__ import annotations

from typing import Any

from django import forms

from memory.constants import (
    MEMORY_TYPES,
    PLACE_MAX_CHARS,
    TEXT_LENGTH,
    TEXT_MIN_CHARS,
    VERBATIM_MAX_CHARS,
)
from memory.models import Memory
from memory.states import STATES
from mira_site.errors import RequestError

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
        max_length=VERBATIM_MAX_CHARS,
        error_messages={"min_length": TEXT_LENGTH, "max_length": TEXT_LENGTH},
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

    def refuse(self, error: RequestError) -> None:
        """Say what the service said, at the field it is about."""
        for name, says in (error.fields or {"text": str(error)}).items():
            self.add_error(name if name in self.fields else "text", says)


class FilterForm(forms.Form):
    """What the list page is asked for; what makes no sense is as if it were not given."""

    q = forms.CharField(required=False, max_length=300)
    state = forms.ChoiceField(required=False, choices=[(name, name) for name in STATES])
    archived = forms.BooleanField(required=False)  # an older address of state=archived
    kind = forms.ChoiceField(
        label="Kind",
        required=False,
        choices=[("", "Any"), *((kind, kind.replace("_", " ")) for kind in MEMORY_TYPES)],
    )
    since = forms.DateField(
        label="Noted from", required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    until = forms.DateField(
        label="Noted until", required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    entity = forms.UUIDField(required=False)
    after = forms.CharField(required=False, max_length=100)

    def asked(self) -> dict[str, Any]:
        """The fields; empty ones are "" or None. `state` is always one of STATES."""
        self.is_valid()
        given = {name: self.cleaned_data.get(name) or "" for name in self.fields}
        given["state"] = given["state"] or ("archived" if given["archived"] else "active")
        return given
