"""Forms of the pages of entities and links."""

from __future__ import annotations

from typing import Any

from django import forms

from memory.links import BOND_MAX_CHARS, REASONING_MAX_CHARS, REASONING_MIN_CHARS
from memory.models import Entity, MemoryLink
from memory.naming import NAME_MAX_CHARS

# Each type as the words between two memories; spec memory 4.1.
LINK_WORDS = {
    MemoryLink.Type.CONFLICTS: "cannot be true together with",
    MemoryLink.Type.CORROBORATES: "supports",
    MemoryLink.Type.SUPERSEDES: "replaces",
    MemoryLink.Type.REFINES: "says more exactly",
    MemoryLink.Type.EXEMPLIFIES: "is an example of",
    MemoryLink.Type.PRECEDES: "came before",
    MemoryLink.Type.CONTEXTUALIZES: "is background to",
    MemoryLink.Type.BECAUSE: "is so because of",
    MemoryLink.Type.TRIGGERED: "led to",
    MemoryLink.Type.RESOLVES: "settles",
}
LINK_WORDS_BACK = {
    MemoryLink.Type.CONFLICTS: "cannot be true together with",
    MemoryLink.Type.CORROBORATES: "is supported by",
    MemoryLink.Type.SUPERSEDES: "is replaced by",
    MemoryLink.Type.REFINES: "is said more exactly by",
    MemoryLink.Type.EXEMPLIFIES: "has as an example",
    MemoryLink.Type.PRECEDES: "came after",
    MemoryLink.Type.CONTEXTUALIZES: "has as background",
    MemoryLink.Type.BECAUSE: "is the reason for",
    MemoryLink.Type.TRIGGERED: "came of",
    MemoryLink.Type.RESOLVES: "is settled by",
}
# In a chain: what a memory is to the one that it led to, and to the one that it came of.
CAUSE_WORDS = {
    MemoryLink.Type.BECAUSE: "the reason",
    MemoryLink.Type.TRIGGERED: "what set it off",
    MemoryLink.Type.RESOLVES: "what it settles",
    MemoryLink.Type.SUPERSEDES: "what it replaces",
    MemoryLink.Type.CONFLICTS: "what it contradicts",
}
CONSEQUENCE_WORDS = {
    MemoryLink.Type.BECAUSE: "for this reason",
    MemoryLink.Type.TRIGGERED: "set off by it",
    MemoryLink.Type.RESOLVES: "settles it",
    MemoryLink.Type.SUPERSEDES: "replaces it",
    MemoryLink.Type.CONFLICTS: "contradicts it",
}


class EntityFilterForm(forms.Form):
    """What a list of entities is asked for; anything else is as if it were not given."""

    q = forms.CharField(required=False, max_length=NAME_MAX_CHARS)
    type = forms.ChoiceField(required=False, choices=[("", "All"), *Entity.Type.choices])
    page = forms.IntegerField(required=False, min_value=1, max_value=100_000)

    def asked(self) -> dict[str, Any]:
        self.is_valid()
        given = self.cleaned_data
        return {
            "q": given.get("q", ""),
            "type": given.get("type", ""),
            "page": given.get("page") or 1,
        }


class EntityForm(forms.Form):
    name = forms.CharField(label="Name", max_length=NAME_MAX_CHARS)
    entity_type = forms.ChoiceField(label="Kind", choices=Entity.Type.choices)


class MergeForm(forms.Form):
    """Which one is another name of the one in view, and which name stays."""

    other = forms.UUIDField()
    keep = forms.ChoiceField(choices=[("this", "this"), ("other", "other")])


class DecideForm(forms.Form):
    same = forms.ChoiceField(choices=[("yes", "yes"), ("no", "no")])


class BackForm(forms.Form):
    """The memory whose page a form stands on, where that is another than the one it is about."""

    back = forms.UUIDField(required=False)


class LinkForm(forms.Form):
    """How the memory in view bears on another one."""

    target = forms.UUIDField(label="The other memory", widget=forms.RadioSelect)
    link_type = forms.ChoiceField(
        label="How this memory bears on it",
        choices=[(kind.value, words) for kind, words in LINK_WORDS.items()],
    )
    reasoning = forms.CharField(
        label="Because",
        min_length=REASONING_MIN_CHARS,
        max_length=REASONING_MAX_CHARS,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    bond = forms.CharField(
        label="In three words (optional)", required=False, max_length=BOND_MAX_CHARS
    )
