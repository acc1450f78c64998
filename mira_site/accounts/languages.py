"""The languages that a person may have answers in."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf.locale import LANG_INFO

AS_WRITTEN = ""  # answers come in the language of the message

# English name and own name by code, as Django knows them, in the order of the English names.
LANGUAGES: Mapping[str, tuple[str, str]] = {
    code: (info["name"], info["name_local"])
    for code, info in sorted(LANG_INFO.items(), key=lambda item: str(item[1].get("name")))
    if "name_local" in info  # the others are only other codes of these
}


def english_name(code: str) -> str:
    """ "" where there is no such language, or none is chosen."""
    return LANGUAGES[code][0] if code in LANGUAGES else ""
