"""The numbers of the conversation."""

from decimal import Decimal

MESSAGE_MAX_CHARS = 100_000  # one message of a person; spec conversations 1.5
COLLAPSE_CLAIM_S = 600  # a collapse that has not finished within this may be claimed anew
COLLAPSE_RETRY_S = (
    300,
    1800,
    7200,
    21600,
)  # waits after the 1st, 2nd, … failed attempt; the last repeats

VEIL_MINUTES = 60  # after the last message off the record the veil lifts by itself
REOPEN_MINUTES = 10  # after a collapse the person may take it back

HEARTBEAT_S = 5  # how often a running turn says that its worker lives
TURN_LOST_S = 30  # a running turn silent for this long belongs to a dead worker
TURN_REQUEUE_S = 20  # a queued turn this old lost its task and is queued again
SWEEP_PERIOD_S = 15  # how often lost turns are looked for

STREAM_TTL_S = 600  # events can be replayed for ten minutes; contract 8
STREAM_MAX_EVENTS = 20_000  # of one person; a bound on Redis memory, not a promise
DELTA_FLUSH_S = 0.04  # text is sent at most this often, so a fast model does not flood the page

RECENT_SUMMARIES = 5  # collapsed segments whose traces the next summary is written after
SUMMARY_WINDOW = 14  # collapsed segments of which some are told at the start; spec conv. 3.6
TOLD_MAX, TOLD_COMPLEXITY = 4, 4.5  # of them with their trace, by their complexities; spec 3.6
HINTED_MAX = 4  # older ones with their precis; spec conversations 3.6
TAIL_PAIRS = 2  # last messages of the segment before, word for word; spec conversations 3.6
TAIL_CHARS = 1_500  # of each
MANIFEST_SEGMENTS = 30  # named with date and title; spec conversations 3.5
REPLY_MAX_TOKENS = 16_000  # of one answer, thinking included
HISTORY_BUDGET_TOKENS = 60_000  # of the active segment's messages in one prompt, newest kept
HISTORY_MESSAGES_MAX = 600  # read for one prompt; the budget ends the window long before
SURFACED_MAX = 8  # memories in one prompt; spec memory 7.2
SURFACED_BUDGET_TOKENS = 2_000  # of them, as they are rendered
PAGE_SIZE = 50
PAGE_SIZE_MAX = 200
EMBEDDING_DIMENSIONS = 384
PHRASES_MAX = 6  # to search for in one turn
PHRASE_SENTENCES = 3  # of a long message that are phrases of their own, the most telling
LONG_MESSAGE_CHARS = 80  # from here on a message of several sentences is long
REFERRED_TURNS = 2  # earlier messages of the person that the newest may refer back to
REFERRED_WORDS = 8  # of them that join the newest message in a phrase
REFERRED_NAMES = 3  # of the messages before, the latest first
KEPT_SIMILARITY = 0.40  # cosine to the newest message from which a surfaced memory stays
KEPT_SHARE = 0.5  # of a memory's telling words in the last messages that makes it stay
OFFLINE_MODEL = "offline"  # what stands as the model of an answer without one
OFFLINE_QUOTES = 5  # memories quoted by an answer without a model
LATELY_MESSAGES = 200  # of a segment, in which an answer without a model looks for an answer
LATELY_QUOTES = 2  # sentences of them in it
OFFLINE_FILES = 5  # named in a trace without a model
OFFLINE_TRACE_SENTENCES = 4  # as many as a model is asked for
SUMMARY_MAX_CHARS = (
    120_000  # of a transcript in one request; more is cut in the middle, and says so
)
STOP_POLL_S = 0.4  # how often a running turn looks whether it was stopped
JSON_CHAT_WAIT_S = (
    600  # how long POST chat/ waits for an event before it answers with the turn as it is
)
SSE_KEEPALIVE_S = 20  # SSE: a comment line is sent this often, so that proxies keep the line open
STORE_TRIES = 12  # an answer in hand is stored again this often while the database is away …
STORE_RETRY_S = 2.0  # … with this pause; together shorter than TURN_LOST_S
RESUME_MARGIN_S = 30  # a replay this close to the stream's end of life may miss its beginning
FIRST_FRAME_S = 3  # a socket sends nothing before its first frame came, or this has passed
READ_S = 5.0  # one read of a socket waits this long for an event; below the reader's time limit
SIGN_IN_LOOK_S = 30  # how often an open socket looks whether its sign-in still stands
COLLAPSE_WAIT_S = (
    100  # how long POST segments/collapse/ waits before it answers with work in progress
)
SEARCH_MESSAGES = 50
SEARCH_CANDIDATES = 500  # newest messages with the words, of which the best are shown
SEARCH_SEGMENTS = 10
SEARCH_SEGMENT_DISTANCE = 0.75  # cosine distance; MiniLM puts unrelated texts near 1.0
TELLING_WORDS_MAX = 5  # words that give a forgotten memory away, looked for in all messages

TOOL_CALLS_MAX = 50  # in one turn; spec conversations 6.2
TOOL_IDENTICAL_MAX = 2  # times the same call is done in one turn
TOOL_FAILURES_MAX = 3  # of one tool in one turn, then it is answered without tools
TURN_COST_MAX = Decimal(2)  # dollars of one answer, after which it has no more tools
REPLAYED_RESULT_MAX_CHARS = 2_000  # of a result in the prompts of later turns; spec 6.3
RESULTS_BY_MODEL_MAX = 8  # long results of one turn that the fast model shortens, else by rule
RESULT_PAGE_CHARS = 8_000  # of a result that is read again

# The provider looks for what it kept in the 20 blocks before a breakpoint; one is left as a margin.
CACHE_LOOKBACK_BLOCKS = 19

SHRUNK_TURNS = 10  # newest turns left whole in a prompt that was too long; spec conversations 4
SHRUNK_CHARS = 400  # of an older text in it; spec conversations 4
SHRUNK_HARD_TURNS = 2  # turns that a prompt keeps which was too long again
SHRUNK_HARD_CHARS = 2_000  # of each of their texts
COMPACTION_RAW_TURNS_HARD = 2  # what stays word for word once a prompt was too long
RATIO_TURNS = 8  # last counted turns that say how far the estimate of tokens is off
RATIO_STEP = 0.25  # in steps, so that the window does not move with every turn
RATIO_MIN, RATIO_MAX = 0.5, 2.0
LAST_WORDS_CHARS = 300  # of an answer that met its limit, from which it goes on

FILE_MAX_BYTES = 20_000_000  # of one file; contract 7
FILES_MAX = 10  # with one message
FILES_UNSENT_MAX = 40  # of one person, uploaded and not yet sent
FILES_UNSENT_HOURS = 24  # after which they are deleted
PDF_SHOWN_PAGES = 20  # of a PDF that a model gets itself and not its text …
PDF_SHOWN_BYTES = 4_500_000  # … and its size
FILES_BUDGET_TOKENS = (
    45_000  # for the files of one message in a prompt, in order; the rest is named
)
# A request may have 32 MB, and base64 adds a third: HISTORY_BUDGET_TOKENS of files stay below that.
FILE_BYTES_PER_TOKEN = 350
FILE_FIRST_CHARS = 300  # of a file's text that a trace is written from

OBSERVED_EVERY_TURNS = 5  # answered turns of a segment between two observations; spec cognition 2.2
OBSERVED_TURNS = 10  # that one observation looks at; spec cognition 2.2
OBSERVED_MESSAGES_MIN = 3  # fewer say nothing; spec cognition 2.2
OBSERVED_TURNS_LATE = 2  # an observation that comes later than this after its turn is dropped
CONTEXT_KEPT_DAYS = 30  # after a segment came to rest, what was sent in it can be looked at
GUIDANCE_TURNS = 2  # turns of the person that an advice lives; spec cognition 2.2

COMPACTION_TRIGGER_TOKENS = 40_000  # of a prompt, from which on it is told in short; spec conv. 4
COMPACTION_RAW_TURNS = 10  # newest turns that stay word for word; spec conversations 4
COMPACTION_MESSAGES = 400  # in the prompts of a segment, from which on too
COMPACTION_STEP_TURNS = 3  # fewer turns are not worth a new brief …
COMPACTION_STEP_TOKENS = 8_000  # … unless they are as long as this
COMPACTION_CLAIM_S = 300  # one compaction of a segment at a time; spec conversations 4
BRIEF_MIN_CHARS = 300  # a shorter brief is no brief
BRIEF_MIN_SHARE = 0.02  # of what it tells
BRIEF_MAX_TOKENS = 6_000

SUBCORTICAL_LIMIT_S = 2.0  # a slow fast-model delays no answer by more than this; issue 5
CONTEXT_PAIRS = 3  # of messages that the fast model reads; spec cognition 1.2
CONTEXT_MESSAGE_CHARS = 2_000  # of each; spec cognition 1.2
EXPANSION_MAX = 4  # phrases of one answer; spec cognition 1.5
OFFERED_WORDS = 15  # of a memory that may stay; spec cognition 1.2
