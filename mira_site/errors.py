"""The error tree. A message says what to do next, is safe to show and holds no user text.

MiraError
├─ RequestError           the caller can fix it
│  ├─ BadRequest          400
│  ├─ PermissionRefused   403
│  ├─ NotFound            404
│  ├─ Conflict            409
│  │  └─ ConfirmationNeeded
│  ├─ TooLarge            413
│  └─ LimitReached        429
├─ DependencyError        something is down, try again, 503
│  ├─ LLMUnavailable
│  │  ├─ LLMRateLimited
│  │  ├─ LLMOverloaded
│  │  └─ LLMCapReached
│  ├─ EmbeddingsUnavailable
│  └─ EventsUnavailable
├─ LLMRefused             the provider will not take this request as it is
│  ├─ LLMBadKey
│  └─ LLMContextTooLong
├─ ModelOutputError       a model broke its contract
├─ ToolError              a tool cannot do what a model asked of it; says what to do instead
├─ WorkLeftDue            a job with no honest substitute was not done; it stays due
└─ SettingError           a setting is missing or malformed; the start stops
"""

from __future__ import annotations

from collections.abc import Mapping


class MiraError(Exception):
    """Base of every error of ours; `code` is stable, `status` is its HTTP status."""

    code = "error"
    status = 500
    retryable = False


def is_retryable(code: str) -> bool:
    """Whether the same again may go well, by an error's code; of an unknown one nothing is known
    that speaks against it.
    """
    classes = [MiraError]
    while classes:
        one = classes.pop()
        if one.__dict__.get("code") == code:
            return one.retryable
        classes += one.__subclasses__()
    return True


class RequestError(MiraError):
    """The caller can fix it. `fields` names the bad inputs, where there are any."""

    code = "bad_request"
    status = 400

    def __init__(self, detail: str, *, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.fields = dict(fields or {})


class BadRequest(RequestError):
    pass


class PermissionRefused(RequestError):
    code = "permission_refused"
    status = 403


class NotFound(RequestError):
    code = "not_found"
    status = 404


class Conflict(RequestError):
    code = "conflict"
    status = 409


class ConfirmationNeeded(Conflict):
    """It cannot be taken back: the same request with `confirmation` goes through."""

    code = "confirmation_needed"

    def __init__(self, detail: str, *, confirmation: str) -> None:
        super().__init__(detail)
        self.confirmation = confirmation


class TooLarge(RequestError):
    code = "too_large"
    status = 413


class LimitReached(RequestError):
    code = "limit_reached"
    status = 429


class DependencyError(MiraError):
    """Something MIRA leans on is away. Trying again later may work."""

    code = "unavailable"
    status = 503
    retryable = True


class LLMUnavailable(DependencyError):
    """The model's provider did not answer, or its answer broke off."""

    code = "model_unavailable"


class LLMRateLimited(LLMUnavailable):
    """The provider asks to slow down; `retry_after_s` is what it asked for, if it said so."""

    code = "model_rate_limited"

    def __init__(self, detail: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class LLMOverloaded(LLMUnavailable):
    code = "model_overloaded"


class LLMCapReached(LLMUnavailable):
    """The person's own cap for this month is reached: no provider is asked before it resets."""

    code = "cap_reached"
    retryable = False


class EmbeddingsUnavailable(DependencyError):
    code = "embeddings_unavailable"


class EventsUnavailable(DependencyError):
    """Redis is away: nothing can be queued or announced right now."""

    code = "events_unavailable"


class LLMRefused(MiraError):
    """The provider refused the request; the same request again will be refused again."""

    code = "model_refused"
    status = 502


class LLMBadKey(LLMRefused):
    code = "model_bad_key"


class LLMContextTooLong(LLMRefused):
    code = "model_context_too_long"


class ModelOutputError(MiraError):
    code = "model_output"
    status = 502
    retryable = True


class ToolError(MiraError):
    """What a tool raises; the message goes back to the model as an error result."""

    code = "tool_failed"
    status = 400


class WorkLeftDue(MiraError):
    code = "left_due"
    status = 503
    retryable = True


class SettingError(MiraError):
    code = "setting"
