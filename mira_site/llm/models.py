"""What every call to a model cost, and what a person set about models."""

from __future__ import annotations

from django.db import models

from mira_site.crypto import EncryptedTextField
from mira_site.owned import Owned


class ModelCall(Owned):
    """One request to the provider, for a turn's reply or for a job."""

    class Outcome(models.TextChoices):
        OK = "ok"
        BAD_ANSWER = "bad_answer"
        FAILED = "failed"
        STOPPED = "stopped"

    turn_id = models.UUIDField(null=True, help_text="conversations.Turn the call served, if any.")
    job = models.CharField(max_length=40)
    tier = models.CharField(max_length=12)
    model = models.CharField(max_length=100)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cache_read_tokens = models.PositiveIntegerField(default=0)
    cache_write_tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(
        max_digits=12, decimal_places=6, default=0, help_text="Dollars, by mira_site/llm/prices.py."
    )
    took_ms = models.PositiveIntegerField(default=0)
    outcome = models.CharField(max_length=12, choices=Outcome)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "llm_model_calls"
        indexes = [
            models.Index(fields=["user", "-created_at"], name="model_call_user_created"),
            models.Index(fields=["turn_id"], name="model_call_turn"),
        ]

    def __str__(self) -> str:
        return f"{self.job} {self.model} {self.outcome}"


class ModelSettings(Owned):
    """A person's choices about models. No row is no choice."""

    monthly_cap = models.DecimalField(
        max_digits=8, decimal_places=2, null=True, help_text="Dollars a month; budget.py."
    )
    noticed_on = models.DateField(
        null=True, help_text="First day of the month for which a near cap was told."
    )
    chosen = models.JSONField(default=dict, help_text="Model by tier, where the server allows.")

    class Meta:
        db_table = "llm_model_settings"
        constraints = [
            models.UniqueConstraint(fields=["user"], name="one_model_settings_a_user"),
            models.CheckConstraint(
                condition=models.Q(monthly_cap__isnull=True) | models.Q(monthly_cap__gt=0),
                name="monthly_cap_is_positive",
            ),
        ]

    def __str__(self) -> str:
        return "choices about models"


class ProviderKey(Owned):
    """A person's own key at the provider; their calls, and only theirs, are made with it."""

    secret = EncryptedTextField()
    last_four = models.CharField(max_length=4, help_text="All of it that is ever shown again.")
    set_at = models.DateTimeField()

    class Meta:
        db_table = "llm_provider_keys"
        constraints = [
            models.UniqueConstraint(fields=["user"], name="one_provider_key_a_user"),
        ]

    def __str__(self) -> str:
        return "a key at the provider"
