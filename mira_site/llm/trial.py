"""One cheap call that tells whether a person's own key is any good."""

from __future__ import annotations

from dataclasses import dataclass

from mira_site.errors import LLMBadKey, LLMRateLimited, LLMRefused, LLMUnavailable
from mira_site.llm import client
from mira_site.llm.types import ChatMessage, ModelRequest, ThinkingMode, Tier

QUESTION = ModelRequest(
    tier=Tier.FAST,
    messages=(ChatMessage(role="user", content="Answer with the word yes."),),
    job="key_test",
    max_tokens=16,
    thinking=ThinkingMode.OFF,
    deadline_s=10.0,
    tries=1,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of it, in words for the person."""

    went_well: bool
    says: str


def of_own_key() -> Trial:
    """Ask the provider with the key of the user in scope."""
    try:
        finished = client.complete(QUESTION)
    except LLMBadKey:
        says = "The provider does not accept this key. Was it copied whole, and is it still active?"
    except LLMRateLimited:
        says = "The provider was reached, but asks to slow down. Try again in a minute."
    except (LLMUnavailable, LLMRefused) as error:
        says = str(error)
    else:
        return Trial(went_well=True, says=f"Your key works: {finished.model} has answered.")
    return Trial(went_well=False, says=says)
