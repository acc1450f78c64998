"""The numbers of the toolbox."""

CALL_LIMIT_S = 20.0  # one call may take this long, unless the tool says otherwise
STOP_POLL_S = 0.1  # how often a running call looks whether the turn was stopped
RESULT_MAX_CHARS = 20_000  # of one result, about 6,000 tokens; the rest is cut and said to be
SUMMARY_MAX_CHARS = 120  # the quiet line that a person sees
