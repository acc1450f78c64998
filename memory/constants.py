"""The numbers of the memory app."""

EMBEDDING_DIMENSIONS = 384  # all-MiniLM-L6-v2

TEXT_MIN_CHARS = 3
TEXT_MAX_CHARS = 2_000  # one focused fact, as extraction, notes and merges write it
VERBATIM_MAX_CHARS = 65_536  # of a text that a person or a program stores as it is; spec recall 1.1
TEXT_LENGTH = f"Write between {TEXT_MIN_CHARS} and {VERBATIM_MAX_CHARS:,} characters."
PLACE_MAX_CHARS = 100  # wing and room; spec recall 1.1
LINK_WEIGHT = 0.7  # of a link that nothing else weighs; spec recall 5.1
REASON_MAX_CHARS = 40  # of archiving
MEMORY_TYPES = ("fact", "preference", "decision", "session_note", "debug_log")  # spec recall 2.1
DEFAULT_TYPE = "fact"
DEFAULT_WING = "life"  # of what is stored without one
ROOM_OF_TYPE = {  # of what is stored without one; spec recall 2.1
    "decision": "decisions",
    "fact": "facts",
    "preference": "preferences",
    "session_note": "session",
    "debug_log": "debug",
}
AGED_AFTER_DAYS = {"session_note": 30, "debug_log": 7}  # then archived; spec recall 2.1
TIMELINE_LIMIT, TIMELINE_LIMIT_MAX = 100, 1_000  # spec recall 5.6
SUMMARY_CHARS = 80  # of a text that decided nothing; spec recall 5.6
CLEAR_UNASKED_MAX = 20  # memories that go without a confirmation; spec recall 5.5
CONFIRMATION_MAX_AGE_S = 600
IMPORTANCE_AT_BIRTH = 0.5  # spec memory 3.3: a model's own guess is not asked for

DUPLICATE_COSINE = 0.92  # nearer than this may be the same fact; spec memory 3.6
RESTATED_COSINE = 0.7  # from here on the same content words in the same order say the same
REPEAT_COSINE = 0.5  # from here on a model may say that a fact is a known one
KNOWN_SHOWN = 20  # memories near a transcript that the model is shown with it
KNOWN_RECALLED = 12  # of them by recall before the merely near ones
KNOWN_FLOOR = 0.15  # cosine under which a memory has nothing to do with what was said
DUPLICATE_NEIGHBOURS = 5  # stored memories looked at for each new one; spec memory 3.6

QUESTION_MAX_CHARS = 10_000  # of what is asked for a context; spec recall 1.1
QUERY_MAX_CHARS = 2_000  # of it that is searched for; the embedding reads about the first 1,000
QUERIES_MAX = 6  # in one recall; each costs an embedding and a multiplication a memory
TERMS_MAX = 32  # words of all queries together, the longest kept; below 63, one bit each
CANDIDATES_PER_LEG = 100  # by meaning and by words, of all phrases together; docs/recall.md
CANDIDATES_MIN_PER_LEG = 40  # of one phrase among several
SESSION_TOP = 5  # memories of a conversation that say how much it is about the question
NEAR_FLOOR = 0.30  # cosine under which a memory is not about the query
OVERLAP_FLOOR = 0.30  # share of a query's words, weighted, that makes a memory an answer to it
RECALL_LIMIT = 8
RECALL_LIMIT_MAX = 200
FRAME_TOKENS = 14  # of a memory in a context beside its text: its element and its id
DAY_TOKENS = 6  # of the line above the memories of a day
DAY_S = 86_400
FULL_BELOW = 60  # tokens left, for which hardly a memory is short enough
SPARE = 10  # candidates beyond those that may fit a context, to take their place
FALLBACK_WINGS_MAX = 10  # each costs a search
WORDS_IN_WHY = 3
KEPT_MAX = 6  # memories that stay from the turn before; spec memory 7.2
FRESH_MIN = 2  # places that the kept ones leave to new ones; spec memory 7.2
PHRASE_STEP = 0.05  # each further phrase counts so much less than the one before
IMPORTANCE_SHARE = 0.2  # of a score that importance decides; see recall.scored
REPLACED_FACTOR = 0.01  # of the score of what another memory supersedes: far behind it
PAST_FACTOR = 2.0  # of the score of what is past, where the past is asked for
BUDGET_TOKENS = 4_000  # contract 7
BUDGET_TOKENS_MIN = 1
BUDGET_TOKENS_MAX = 100_000
SEARCH_MAX = 100  # memories a search on the list page can find

CHUNK_BUDGET_TOKENS = 40_000  # of a transcript in one question to the model
ASSISTANT_TEXT_MAX_CHARS = 2_000  # of one answer in that transcript: it is only context
RULE_FACTS_MAX = 60  # of one segment, without a model
STATEMENT_MAX_CHARS = 400
STATEMENT_MIN_WORDS = 3
PAGE_SIZE = 30
PAGE_SIZE_MAX = 200

WORK_RETRY_S = (  # waits after the 1st, 2nd, … failed attempt; the last repeats
    300,
    1_800,
    7_200,
    21_600,
    86_400,
)
WORK_CLAIM_S = 1_800  # work that has not ended within this may be claimed anew; passes ask a model
REEMBED_BATCH = 100  # memories in one transaction: the person's other writes wait for it
REEMBED_SLICE_S = 120.0  # then the worker is free for others; beat comes back after five minutes
WORK_PER_RUN = 20  # pieces of one person's work in one task; the rest waits for the next
CURATION_USE_DAYS = 7  # between two floor passes, and two looks at entities; spec memory 9
DATED_RESCORE_HOURS = 20  # scores tied to a date are at most this old, and an hour of beat
DATED_AHEAD_DAYS = 15  # such a date: an event this near …
DATED_PAST_DAYS = 46  # … or this little past, by scoring.LIFT and PAST_EVENT_DAYS

MERGE_MAX_SOURCES = 20
MERGE_TEXT_MIN_CHARS = 10  # spec memory 6.3
MERGE_TEXT_MIN_SHARE = 0.5  # of its shortest part: a merged text that is shorter has lost something
MERGE_TEXT_SLACK_CHARS = 100  # above the sum of its parts; a longer one has made something up
MERGE_UNDO_DAYS = 30  # contract 12.2
NOTE_MAX_CHARS = 500  # of a merge, and the reasoning of a link
ANNOTATION_MIN_CHARS = 3  # spec memory 8.1
ANNOTATION_MAX_CHARS = 1_000

CURATION_ITERATIONS_MAX = 8  # rounds of one pass with the model; spec memory 6.1
CURATION_LIMIT_S = 480  # of one pass; spec memory 6.1
CURATION_MAX_TOKENS = 8_000  # of one answer in it, thinking included
CURATION_BATCH = 12  # new memories in one pass
CURATION_BATCHES_MAX = 3  # passes in one run, which must end within WORK_CLAIM_S
CURATION_HINTS = 6  # candidates shown for each new memory
CURATION_SEARCH = 8  # results of a search of the curator
FLOOR_BELOW = 0.15  # importance; what nothing speaks for sinks to 0.119 and on to the archive
FLOOR_SAMPLE = 8  # spec memory 6.4
FLOOR_UNTENDED_DAYS = 14  # calendar days since the last look; spec memory 6.4
