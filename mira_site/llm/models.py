"""What every call to a model cost."""

from __future__ import annotations

from django.db import models

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
