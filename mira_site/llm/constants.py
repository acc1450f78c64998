"""Numbers and names of the model client."""

DEFAULT_BASE_URL = "https://api.anthropic.com"
PLACEHOLDER_KEY = "none"  # local servers want no key, the SDK wants one

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0  # between two pieces of an answer; the provider pings in between
STOP_POLL_S = 0.2  # how long a pressed stop button may go unnoticed while nothing arrives

MAX_TRIES = 3  # in all, of a call that has not yet brought anything
RETRY_CAP_S = 20.0  # longest wait between two tries, whatever retry-after says
RETRY_JITTER = 0.25  # a wait is drawn within this share of its length

REPLY_MAX_TOKENS = 16_000
JOB_MAX_TOKENS = 8_000  # thinking counts too
FAST_DEADLINE_S = 10.0  # a person is waiting, and every fast job has a substitute
FAST_TRIES = 2
MAX_BREAKPOINTS = 4  # of the Messages API

# What models of the API version 2026-10-21 take, by the start of their name. Others are left at
# their default and, where they refuse an order to call a tool, remembered (client.py).
WITHOUT_FORCED_TOOLS = (
    "claude-sonnet-5-5",
    "claude-opus-5-5",
    "claude-fable-5-1",
    "claude-mythos-5-1",
)
THINKING_OFF = {"claude-sonnet-5-5": "between_tools", "claude-haiku-5-5": "disabled"}
THINKING_SHOWN = ("claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5")

# Models that take an effort (`output_config`), "low", "medium" and "high" among it.
WITH_EFFORT = (
    "claude-fable-5",
    "claude-mythos-5",
    "claude-opus-5",
    "claude-sonnet-5",
    "claude-haiku-5",
    "claude-opus-4-5",
    "claude-opus-4-6",
    "claude-opus-4-7",
    "claude-opus-4-8",
    "claude-sonnet-4-6",
)

# How servers that speak the Messages API say that a prompt does not fit: Anthropic, llama.cpp,
# vLLM and LiteLLM, Ollama. In lower case.
TOO_LONG_PHRASES = (
    "prompt is too long",
    "exceed context limit",
    "exceeds the available context",
    "context length",
    "context window",
    "contextwindowexceeded",
)
