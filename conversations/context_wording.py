"""What the parts of a prompt are called on the page that shows it, and what they are there for."""

from __future__ import annotations

from collections.abc import Mapping

from conversations.constants import CONTEXT_KEPT_DAYS

SLOTS: Mapping[str, tuple[str, str]] = {
    "constant": (
        "Always the same",
        "What I begin every answer with, for everybody. The provider keeps it ready, so it costs "
        "next to nothing.",
    ),
    "segment": (
        "The same throughout this part",
        "What I take along from before. It is settled when a part of our conversation begins.",
    ),
    "hud": (
        "New with every message",
        "What stands right before your words. It is put together for this one answer and is in no "
        "other.",
    ),
}
SECTIONS: Mapping[str, tuple[str, str]] = {
    "persona": ("Who I am", "How I behave and how I speak."),
    "person": ("Who you are", "Your name, and where your clock stands."),
    "manifest": (
        "What there is",
        "Earlier parts of our conversation by day and title, so that I know where to look.",
    ),
    "continuation": (
        "What went before",
        "My own traces of the last parts, and the last words that we said.",
    ),
    "brief": (
        "Earlier in this part",
        "Your older messages of this part and my answers, in my words. The newer ones went along "
        "word for word.",
    ),
    "clock": ("What time it is", "Your date and time, and how long it was quiet."),
    "veil": ("Off the record", "That nothing of this is remembered."),
    "arrived": (
        "Just remembered",
        "The trace of a part that was finished only after this one had begun.",
    ),
    "memories": ("What came to mind", "The memories that came up for your message."),
    "open_question": (
        "A question I may ask",
        "Two memories that cannot both be true. I ask at most once a day.",
    ),
    "cut_answer": (
        "Where my last answer broke off",
        "It met the limit of its length; these were its last words.",
    ),
    "guidance": (
        "Advice from the second pair of eyes",
        "Somebody looks at our talk from outside every few turns, and this is what they said.",
    ),
}
# Why there is no prompt to show, by context_selectors.Missing.
NOTHING_KEPT: Mapping[str, str] = {
    "off_record": "This was off the record: nothing of what I saw is kept.",
    "quoted": "No model was asked for this answer. I quoted what I remember, so no text was put "
    "together.",
    "broken": "This answer broke off before it was written. What I saw for it was not kept.",
    "stopped": "You stopped this answer before it began. What I saw for it was not kept.",
    "expired": f"This part of our conversation came to rest more than {CONTEXT_KEPT_DAYS} days "
    "ago. What I saw in it is kept no longer than that.",
    "gone": "Of what I saw here nothing is kept.",
}
JOBS: Mapping[str, str] = {
    "reply": "The answer",
    "subcortical": "Understanding your message",
    "tool_result": "Shortening what a tool returned",
}
ACTIONS: Mapping[str, str] = {
    "noop": "Nothing to say",
    "concern": "A concern",
    "coaching": "A hint",
    "initiative": "An idea",
}
REASONS: Mapping[str, str] = {
    "": "there was nothing to read but a file",
    "not_configured": "no model is set up on this server",
    "model_output": "the fast model gave no usable answer",
    "model_bad_key": "the key for the model was refused",
    "cap_reached": "your monthly cap is reached",
}
REASON_OTHERWISE = "the fast model was away, or took longer than two seconds"


def section(name: str) -> tuple[str, str]:
    """Its title, and what it is for; a name that is not known stands for itself."""
    return SECTIONS.get(name, (name.replace("_", " ").capitalize(), ""))


def job(name: str) -> str:
    return JOBS.get(name, name.replace("_", " ").capitalize())


def reason(code: str) -> str:
    """Why rules stood in for the fast model, to end a sentence with."""
    return REASONS.get(code, REASON_OTHERWISE)
