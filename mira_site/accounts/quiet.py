"""The quiet time that each person chose, for a query over many of them."""

from __future__ import annotations

from django.db.models import Case, DurationField, Func, IntegerField, Q, TextField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast
from django.db.models.lookups import Exact, GreaterThanOrEqual, LessThanOrEqual, Regex

from mira_site.accounts.constants import QUIET_MINUTES, QUIET_MINUTES_MAX, QUIET_MINUTES_MIN


def quiet_time(path: str) -> Combinable:
    """An interval, as `preferences(user).quiet_minutes` is a number; `path` leads to the account.

    What is stored and is no whole number within the bounds counts as not chosen.
    """
    stored = f"{path}__preferences"
    chosen = KeyTextTransform("quiet_minutes", stored)
    kind = Func(
        KeyTransform("quiet_minutes", stored), function="jsonb_typeof", output_field=TextField()
    )
    is_whole = Q(Exact(kind, Value("number"))) & Q(Regex(chosen, Value(r"^\d{2,3}$")))
    number = Case(
        When(is_whole, then=Cast(chosen, IntegerField())),
        default=Value(QUIET_MINUTES),
        output_field=IntegerField(),
    )
    is_allowed = Q(GreaterThanOrEqual(number, Value(QUIET_MINUTES_MIN))) & Q(
        LessThanOrEqual(number, Value(QUIET_MINUTES_MAX))
    )
    minutes = Case(
        When(is_allowed, then=number),
        default=Value(QUIET_MINUTES),
        output_field=IntegerField(),
    )
    return Func(
        minutes,
        function="make_interval",
        template="%(function)s(mins => %(expressions)s)",
        output_field=DurationField(),
    )
