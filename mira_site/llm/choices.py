"""What a person chose about models: which one answers, where the server leaves a choice."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from django.conf import settings

from mira_site import isolation
from mira_site.errors import BadRequest
from mira_site.llm.models import ModelSettings
from mira_site.llm.types import Tier


def default_model(tier: Tier) -> str:
    """The server's own model for a tier."""
    models = {
        Tier.REPLY: settings.MIRA_MODEL,
        Tier.FAST: settings.MIRA_FAST_MODEL,
        Tier.BACKGROUND: settings.MIRA_BACKGROUND_MODEL,
    }
    return str(models[tier])


def allowed(tier: Tier) -> tuple[str, ...]:
    """The models a person may choose from, the server's own first; () where there is no choice."""
    listed = settings.MIRA_MODELS_ALLOWED.get(tier.value, ())
    found = tuple(dict.fromkeys((default_model(tier), *listed)))
    return found if len(found) > 1 else ()


def of(user_id: uuid.UUID | str) -> ModelSettings | None:
    """The person's row with their account, if they ever chose anything."""
    rows = ModelSettings.objects.for_user(user_id).select_related("user")
    found: ModelSettings | None = rows.first()
    return found


def in_scope() -> ModelSettings | None:
    """The row of the user in scope; none in the all-users context."""
    user_id = isolation.current().user_id
    return of(user_id) if user_id else None


def model_for(tier: Tier, chosen: ModelSettings | None) -> str:
    """The chosen model as long as the server allows it, else the server's own."""
    model = str(chosen.chosen.get(tier.value, "")) if chosen is not None else ""
    return model if model in allowed(tier) else default_model(tier)


def choose(*, user_id: uuid.UUID, models: Mapping[str, str]) -> None:
    """Choose a model for some tiers; an empty name goes back to the server's own.

    Raises BadRequest, its fields are the tiers.
    """
    for name, model in models.items():
        if model and model not in allowed(Tier(name)):
            raise BadRequest(
                "This model cannot be chosen here.",
                fields={name: "This model cannot be chosen here."},
            )
    row, _ = ModelSettings.objects.for_user(user_id).get_or_create(user_id=user_id)
    kept = {name: model for name, model in {**row.chosen, **models}.items() if model}
    ModelSettings.objects.for_user(user_id).filter(pk=row.pk).update(chosen=kept)
