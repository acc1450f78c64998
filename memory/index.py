"""What recall searches by of a person's memories, kept in the process between two recalls.

Reaching a row is what a scan costs, and each recall looks at all rows of a person. So the columns
that it looks at stay here as numpy arrays, and only what changed since is read again: triggers note
which memories did and in which transaction (memory_changes), and the snapshot of the last look says
which transactions it did not see. That is exact: neither clocks nor the order of commits matter.
docs/adr/0014-index-in-the-process.md has the figures.

An index holds no text: words are there as hashes. It never changes; a newer one takes its place.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.db import connection
from django.db.models.functions import Now

from memory import visibility
from memory.constants import EMBEDDING_DIMENSIONS
from memory.models import MemoryChange
from mira_site import embeddings, isolation
from mira_site.accounts.models import User
from mira_site.embeddings import Vectors
from mira_site.errors import EmbeddingsUnavailable

Places = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
Ids = npt.NDArray[np.bytes_]  # 16 bytes each, whose order is that of the ids

BYTES_MAX = 256 * 2**20  # of all indexes of a process; the one just used stays, however large
IDLE_S = 1_800  # unused for so long, it is dropped
CHANGES_KEPT = timedelta(days=1)  # in the log; an index has to have looked at it within half of it
CHUNK = 4_000  # rows of one statement, about 7 MB
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)  # from which PostgreSQL counts its microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Columns of memories in the order of their ids; `…_of` is the row of a word or a passage.

    Times are microseconds since 2000. Wings and rooms are hashes of their small letters, words are
    hashes of lexemes. A vector of another model than today's is zeros, as if there were none.
    """

    ids: Ids
    sessions: Ids
    positions: npt.NDArray[np.int32]
    is_kept_back: Flags
    expires_at: Integers
    valid_until: Integers
    wings: Integers
    rooms: Integers
    vectors: Vectors
    words: Integers
    words_of: npt.NDArray[np.int32]
    passages: Vectors
    passages_of: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(getattr(self, one.name).nbytes for one in fields(self))


_COLUMNS = tuple(one.name for one in fields(Rows) if one.name.partition("_")[0] not in
                 {"words", "passages"})  # fmt: skip


def _joined(new: Sequence[Rows], old: Rows, *, changed: Ids) -> Rows:
    """The new rows, and those of the old ones that have not changed.

    Equal rows make equal bytes, however they came in. What is copied are stretches of rows, of
    which there are few, as each part is in order: most of it is vectors, and those are large.
    """
    parts = [*new, old]
    starts = np.cumsum([0, *map(len, parts)])
    ids = np.concatenate([one.ids for one in parts])
    stays = np.ones(len(ids), dtype=np.bool_)
    if len(old):
        stays[starts[-2] :] = ~np.isin(old.ids, changed)
    order = np.argsort(ids, kind="stable")
    order = order[stays[order]]
    stretches = _stretches(order, starts)
    place = np.full(len(ids), -1, dtype=np.int32)
    place[order] = np.arange(len(order))

    def column(name: str) -> Any:
        columns = [getattr(one, name) for one in parts]
        return np.concatenate([columns[0][:0], *(columns[part][rows] for part, rows in stretches)])

    def beside(name: str) -> tuple[Any, Any]:
        """Words or passages, and their rows."""
        of = [place[start:][getattr(one, f"{name}_of")]
              for start, one in zip(starts[:-1], parts, strict=True)]  # fmt: skip
        rows = np.concatenate(of)
        return np.concatenate([getattr(one, name) for one in parts])[rows >= 0], rows[rows >= 0]

    words, words_of = beside("words")
    passages, passages_of = beside("passages")
    by_row = np.argsort(passages_of, kind="stable")
    return Rows(
        **{name: column(name) for name in _COLUMNS},
        words=words,
        words_of=words_of,
        passages=passages[by_row],
        passages_of=passages_of[by_row],
    )


def _stretches(order: Places, starts: Places) -> list[tuple[int, slice]]:
    """Rows in the order wanted as parts, which start there, and rows of each."""
    part = np.searchsorted(starts, order, side="right") - 1
    own = order - starts[part]
    begins = np.flatnonzero((np.diff(own, prepend=-2) != 1) | (np.diff(part, prepend=-1) != 0))
    ends = np.append(begins, len(order))[1:]  # none of none, where there are no rows
    return [(int(part[begin]), slice(own[begin], own[end - 1] + 1))
            for begin, end in zip(begins, ends, strict=True)]  # fmt: skip


class Index:
    """Rows, and in which order they were said.

    `by_place` are the rows by session and position; `is_next[i]`: the one after the i-th of these
    was said directly after it. `session_of` numbers the sessions.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        sessions = rows.sessions.view(">u8").reshape(-1, 2).astype(np.uint64)
        self.by_place = np.lexsort((rows.positions, sessions[:, 1], sessions[:, 0]))
        ordered = sessions[self.by_place]
        starts = np.ones(len(rows), dtype=np.bool_)
        starts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
        self.session_of = np.empty(len(rows), dtype=np.intp)
        self.session_of[self.by_place] = np.cumsum(starts) - 1

    def __len__(self) -> int:
        return len(self.rows)

    def visible(self, now: datetime, *, past: bool) -> Flags:
        """Which may come up: the rule of visibility.py."""
        moment = (now - _EPOCH) // timedelta(microseconds=1)
        seen: Flags = ~self.rows.is_kept_back & (self.rows.expires_at > moment)
        return seen if past else seen & (self.rows.valid_until > moment)

    def similarities(self, asked: Sequence[Vectors]) -> Vectors:
        """Cosines, (n, p), to each vector; a long text is as near as its nearest passage."""
        turned = np.stack(asked).T
        found: Vectors = self.rows.vectors @ turned
        if len(self.rows.passages):
            starts = np.flatnonzero(np.diff(self.rows.passages_of, prepend=-1))
            nearest = np.maximum.reduceat(self.rows.passages @ turned, starts, axis=0)
            rows = self.rows.passages_of[starts]
            found[rows] = np.maximum(found[rows], nearest)
        return found

    def holding(self, lexeme: str) -> Places:
        found: Places = self.rows.words_of[self.rows.words == hash(lexeme)].astype(np.intp)
        return found

    def rows_of(self, ids: Sequence[UUID]) -> Places:
        """Of those of the memories that are here."""
        wanted = _packed(ids)
        places = np.searchsorted(self.rows.ids, wanted)
        is_here = np.append(self.rows.ids, b"")[places] == wanted
        found: Places = places[is_here]
        return found


def standing_in(index: Index, *, wing: str | None, room: str | None) -> Flags:
    """Which rows stand there, whatever the case of the letters; all, if nothing is given.

    What small letters are is for PostgreSQL to say: one statement, if anything is given.
    """
    stands = np.ones(len(index), dtype=np.bool_)
    if wing is None and room is None:
        return stands
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT hashtextextended(lower(%s::text), 0), hashtextextended(lower(%s::text), 0)",
            [wing, room],
        )
        wing_hash, room_hash = cursor.fetchone()
    if wing is not None:
        stands &= index.rows.wings == wing_hash
    if room is not None:
        stands &= index.rows.rooms == room_hash
    return stands


# --- Keeping -----------------------------------------------------------------------------------
@dataclass(slots=True)
class _Kept:
    """The index of one person, as of a snapshot of PostgreSQL's and a time of its clock."""

    index: Index | None = None
    snapshot: str | None = None
    looked_at: datetime | None = None
    model: str | None = None
    used_at: float = 0.0  # of the monotonic clock
    lock: threading.Lock = field(default_factory=threading.Lock)


_kept: OrderedDict[UUID, _Kept] = OrderedDict()  # the one used last at the end
_guard = threading.Lock()  # of the dictionary; each index has a lock of its own
_sweeper: list[threading.Timer] = []


def of(user: User) -> Index:
    """What may be searched of the person's memories, as the next statement would see them.

    One statement, and one or more to read what is new. In a transaction that has written something
    nothing that is read is kept: it may be rolled back.
    Raises RuntimeError outside the person's scope: what is kept here no policy stands before.
    """
    if isolation.current().user_id != str(user.pk):
        raise RuntimeError("An index was asked for outside the scope of its person.")
    model = _model()
    with _guard:
        kept = _kept.setdefault(user.pk, _Kept())
        _kept.move_to_end(user.pk)
        kept.used_at = time.monotonic()
    with kept.lock:
        known = kept.index if kept.model == model else None
        look = _look(user, kept if known is not None else _Kept())
        index = _refreshed(user, known if look.is_known else None, look.changed, model)
        if not look.has_written:
            kept.index, kept.model = index, model
            kept.snapshot, kept.looked_at = look.snapshot, look.at
    _make_room()
    return index


def _make_room() -> None:
    with _guard:
        sizes = {user_id: one.index.rows.size for user_id, one in _kept.items() if one.index}
        over = sum(sizes.values()) - BYTES_MAX
        for user_id in list(sizes)[:-1]:
            if over <= 0:
                break
            over -= sizes[user_id]
            del _kept[user_id]
        if not any(one.is_alive() for one in _sweeper):
            _sweep_later()


def _sweep_later() -> None:
    timer = threading.Timer(IDLE_S / 4, _drop_idle)
    timer.name, timer.daemon = "indexes-sweep", True
    _sweeper[:] = [timer]
    timer.start()


def _drop_idle() -> None:
    with _guard:
        for user_id in [
            one for one, kept in _kept.items() if time.monotonic() - kept.used_at > IDLE_S
        ]:
            del _kept[user_id]
        if _kept:
            _sweep_later()


def delete_old_changes() -> int:
    """The log of what changed long ago. Runs inside `all_users`. Returns the rows deleted."""
    # By PostgreSQL's clock, which also says how old an index is.
    rows = MemoryChange.objects.filter(at__lt=Now() - CHANGES_KEPT)
    return int(rows.delete()[0])


# --- Reading -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What changed since the last look; all there is, if that one is not known or too old."""

    snapshot: str
    at: datetime
    has_written: bool
    is_known: bool
    changed: Sequence[UUID]


# A snapshot that ends before the one kept is of another database, restored in its place.
_LOOK = """
WITH look AS (
    SELECT coalesce(
        %(looked_at)s::timestamptz > statement_timestamp() - %(kept)s::interval / 2
        AND pg_snapshot_xmax(%(seen)s::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot()),
        FALSE
    ) AS is_known
)
SELECT pg_current_snapshot()::text, statement_timestamp(),
       pg_current_xact_id_if_assigned() IS NOT NULL, is_known,
       CASE WHEN is_known THEN ARRAY(
           SELECT DISTINCT memory_id FROM memory_changes
           WHERE user_id = %(user)s AND transaction >= pg_snapshot_xmin(%(seen)s::pg_snapshot)
             AND NOT pg_visible_in_snapshot(transaction, %(seen)s::pg_snapshot)
       ) ELSE ARRAY(SELECT id FROM memory_memories WHERE user_id = %(user)s ORDER BY id) END
FROM look
"""
_VECTOR = (
    "CASE WHEN {of}.embedding_model = %(model)s THEN vector_send({of}.embedding) ELSE %(none)s END"
)
# IS NOT DISTINCT FROM: by `=` PostgreSQL takes an index that begins with the user, and walks
# through all rows of the person to find a few ids.
_READ = f"""
SELECT string_agg(packed, ''::bytea ORDER BY id), string_agg(words, E'\\f' ORDER BY id), (
    SELECT string_agg(uuid_send(p.memory_id) || {_VECTOR.format(of="p")}, ''::bytea
                      ORDER BY p.memory_id, p.position)
    FROM memory_passages AS p
    WHERE p.user_id = %(user)s AND p.memory_id = ANY(%(ids)s::uuid[])
)
FROM (
    SELECT m.id, uuid_send(m.id) || uuid_send(coalesce(m.source_segment_id, m.id))
           || int4send(m.position) || boolsend({visibility.KEPT_BACK_SQL})
           || timestamptz_send(coalesce(m.expires_at, 'infinity'))
           || timestamptz_send(coalesce(m.valid_until, 'infinity'))
           || int8send(hashtextextended(lower(m.wing), 0))
           || int8send(hashtextextended(lower(m.room), 0))
           || {_VECTOR.format(of="m")} AS packed,
           array_to_string(tsvector_to_array(m.search_vector), E'\\n') AS words
    FROM memory_memories AS m
    WHERE m.user_id IS NOT DISTINCT FROM %(user)s AND m.id = ANY(%(ids)s::uuid[])
) AS every
"""  # noqa: S608
_VECTOR_FIELDS = [("header", ">u4"), ("vectors", ">f4", EMBEDDING_DIMENSIONS)]
_ROW = np.dtype(
    [
        ("ids", "S16"), ("sessions", "S16"), ("positions", ">i4"), ("is_kept_back", "?"),
        ("expires_at", ">i8"), ("valid_until", ">i8"), ("wings", ">i8"), ("rooms", ">i8"),
        *_VECTOR_FIELDS,
    ]
)  # fmt: skip
_PASSAGE = np.dtype([("ids", "S16"), *_VECTOR_FIELDS])
_NO_VECTOR = bytes(np.dtype(_VECTOR_FIELDS).itemsize)


def _model() -> str | None:
    with suppress(EmbeddingsUnavailable):
        return embeddings.model_id()
    return None


def _look(user: User, kept: _Kept) -> _Look:
    values = {
        "user": user.pk,
        "seen": kept.snapshot,
        "looked_at": kept.looked_at,
        "kept": CHANGES_KEPT,
    }
    with connection.bound_cursor(binary=True, prepared=True) as cursor:  # type: ignore[attr-defined]
        cursor.execute(_LOOK, values)
        snapshot, at, has_written, is_known, changed = cursor.fetchone()
    return _Look(
        snapshot=snapshot, at=at, has_written=has_written, is_known=is_known, changed=changed
    )


def _refreshed(
    user: User, known: Index | None, changed: Sequence[UUID], model: str | None
) -> Index:
    if known is not None and not changed:
        return known
    new = [_read(user, changed[at : at + CHUNK], model) for at in range(0, len(changed), CHUNK)]
    old = known.rows if known is not None else _rows(b"", "", b"")
    return Index(_joined(new, old, changed=_packed(changed)))


def _read(user: User, ids: Sequence[UUID], model: str | None) -> Rows:
    """Those of the memories that are there."""
    listed = f"{{{','.join(one.hex for one in ids)}}}"
    values = {"user": user.pk, "ids": listed, "model": model, "none": _NO_VECTOR}
    with connection.bound_cursor(binary=True) as cursor:  # type: ignore[attr-defined]
        cursor.execute(_READ, values)
        packed, words, passages = cursor.fetchone()
    return _rows(packed or b"", words or "", passages or b"")


def _rows(packed: bytes, words: str, passages: bytes) -> Rows:
    """As PostgreSQL sends them, all by the ids of the memories."""
    rows, of_passages = np.frombuffer(packed, _ROW), np.frombuffer(passages, _PASSAGE)
    held = [one.split("\n") if one else [] for one in words.split("\f")] if len(rows) else []
    return Rows(
        **{name: rows[name].astype(rows.dtype[name].base.newbyteorder("=")) for name in _COLUMNS},
        words=np.array([hash(one) for several in held for one in several], dtype=np.int64),
        words_of=np.repeat(np.arange(len(held), dtype=np.int32), [len(one) for one in held]),
        passages=of_passages["vectors"].astype(np.float32),
        passages_of=np.searchsorted(rows["ids"], of_passages["ids"]).astype(np.int32),
    )


def _packed(ids: Sequence[UUID]) -> Ids:
    return np.frombuffer(b"".join(one.bytes for one in ids), dtype="S16")
