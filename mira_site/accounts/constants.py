"""The numbers and names of accounts."""

from __future__ import annotations

from datetime import timedelta

THEMES = ("system", "light", "dark")
EFFORTS = ("automatic", "low", "medium", "high")  # how hard the model that answers shall try
QUIET_MINUTES = 60  # without a message, after which a stretch of conversation becomes memory
QUIET_MINUTES_MIN, QUIET_MINUTES_MAX = 30, 480
NAME_MAX = 60  # characters
USAGE_MONTHS = 24  # that the usage page and the API go back

SETUP_LINK_MAX_AGE = timedelta(hours=24)  # a restart prints a fresh one
SETUP_SALT = "mira.accounts.setup"  # keeps other signed values from passing as set-up links
SETUP_LOCK = 0x4D495241  # "MIRA": the advisory lock under which the first account is made

SESSION_SALT_BYTES = 16  # as 32 hex digits

INVITATION_MAX_AGE = timedelta(days=14)
INVITATION_TOKEN_BYTES = 32
INVITATION_SESSION_KEY = "invitation_id"

ZONE_COOKIE = "timezone"  # set by the pages' script, percent-encoded IANA name
IPV6_CUSTOMER_PREFIX = 64  # bits; whoever has an IPv6 address has at least such a network
FAILED_SIGN_IN_WAIT_S = 300  # the longest window of ACCOUNT_RATE_LIMITS["login_failed"]
