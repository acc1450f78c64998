"""The numbers of the toolbox."""

CALL_LIMIT_S = 20.0  # one call may take this long, unless the tool says otherwise
STOP_POLL_S = 0.1  # how often a running call looks whether the turn was stopped
RESULT_MAX_CHARS = 20_000  # of one result in a prompt, about 6,000 tokens; the rest can be read on
RESULT_KEPT_MAX_CHARS = 200_000  # of one result that is kept; the rest is cut and said to be
CALLS_AT_ONCE = 4  # side by side in one turn: each has a thread and a database connection
SUMMARY_MAX_CHARS = 120  # the quiet line that a person sees
