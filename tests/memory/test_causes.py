"""Causal links by rule: written with the memory, between the right two, and rarely."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from memory import causes, entities, links, selectors, services, storage, truth
from memory.models import Memory, MemoryLink, Stakes, Trust
from memory.naming import Named
from memory.quoting import meaning
from memory.storage import Fact
from mira_site import embeddings
from tests.factories import MemoryFactory

NOW = timezone.now()


def told(user, text, *, days_ago=1.0, **given):
    when = NOW - timedelta(days=days_ago)
    return MemoryFactory(user=user, text=text, created_at=when, said_at=when, **given)


def say(user, text, **given):
    return services.create(user=user, text=text, **given)


def written(user):
    return list(MemoryLink.objects.for_user(user).order_by("id"))


@pytest.mark.parametrize(
    ("relation", "earlier", "later"),
    [
        (
            "because",
            "The database server is almost out of disk space.",
            "The deployment failed because the database ran out of disk space.",
        ),
        (
            "because",
            "Le disque de la base de données est presque plein.",
            "Le déploiement a échoué parce que le disque de la base de données est plein.",
        ),
        (
            "triggered",
            "There was an outage of the web shop on Monday.",
            "Following the outage of the web shop on Monday we added a second server.",
        ),
        (
            "triggered",
            "La panne de lundi a arrêté la boutique pendant deux heures.",
            "Suite à la panne de lundi, nous avons ajouté un second serveur.",
        ),
        (
            "resolves",
            "The login bug keeps customers out of the shop.",
            "The new patch fixes the login bug.",
        ),
        (
            "resolves",
            "Le problème de connexion empêche les clients d'acheter.",
            "Le correctif résout le problème de connexion.",
        ),
        (
            "supersedes",
            "The parking rule of the office is that visitors park in the yard.",
            "The new parking rule of the office replaces the parking rule about the yard.",
        ),
        (
            "supersedes",
            "Le contrat de 2024 prévoit trente jours de congés.",
            "Le nouveau contrat remplace le contrat de 2024.",
        ),
        (
            "conflicts",
            "The report of the auditor says that the accounts are fine.",
            "The bank statement contradicts the report of the auditor about the accounts.",
        ),
        (
            "conflicts",
            "Le rapport de l'auditeur dit que les comptes sont en ordre.",
            "Le rapport d'Anna contredit le rapport de l'auditeur.",
        ),
    ],
)
def test_a_cue_joins_a_memory_with_the_earlier_one_it_is_about(as_alice, relation, earlier, later):
    cause = told(as_alice, earlier)
    told(as_alice, "My sister Clara plays the cello in Hamburg.")
    new = say(as_alice, later)
    (link,) = written(as_alice)
    assert (link.link_type, link.author) == (relation, "rule")
    assert {link.source_id, link.target_id} == {cause.id, new.id}
    assert 0.45 <= link.weight <= 1
    assert "It says" in link.reasoning
    (node,) = selectors.causal_chain(as_alice, new.id, now=timezone.now()).causes
    assert (node.id, node.relation, node.weight) == (cause.id, relation, link.weight)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("I went for a run this morning.", "I went for a run after work."),
        ("I called Anna about lunch.", "After lunch I called Anna."),
        ("In 2019 I moved to Berlin.", "I have lived in Berlin since 2019."),
        ("I went for a run in the park.", "I went for a run because Tom was late."),
        ("My car is red.", "My car is in the garage and it costs a lot."),
        ("My cat Minka is ill.", "I look after my sister's cat Minka."),
        ("Je fais une sieste.", "Après le déjeuner, je fais une sieste."),
        ("La règle est simple.", "La règle est simple : pas de téléphone à table."),
        ("The project is late.", "The project is late because the supplier went bankrupt."),
        ("I like tea.", "I like tea. However, I drink coffee at work."),
    ],
)
def test_what_is_only_alike_is_not_joined(as_alice, earlier, later):
    told(as_alice, earlier)
    say(as_alice, later)
    assert written(as_alice) == []


EARLIER = "The database server is almost out of disk space."
LATER = "The deployment failed because the database ran out of disk space."


class TestWhichTarget:
    def test_the_most_alike_is_chosen(self, as_alice):
        told(as_alice, "I bought a disk of vinyl for the space above my desk.")
        cause = told(as_alice, EARLIER, days_ago=3)
        say(as_alice, LATER)
        (link,) = written(as_alice)
        assert link.target_id == cause.id

    def test_a_shared_name_makes_it_more_alike(self, as_alice):
        cause = told(as_alice, EARLIER)
        say(as_alice, LATER)
        (plain,) = written(as_alice)
        MemoryLink.objects.all().delete()
        other = told(as_alice, "Because the disk space is gone, the database is slow.", days_ago=0)
        names = [Named(name="Postgres", entity_type="product")]
        entities.attach(as_alice, {cause.id: names, other.id: names}, at=NOW)
        (named,) = causes.link(as_alice, [other], at=timezone.now())
        cosine = float(other.embedding @ cause.embedding)
        assert named.weight == pytest.approx(cosine + causes.SHARED_NAME, abs=0.002)
        assert plain.weight < 1

    @pytest.mark.parametrize(
        "given",
        [
            {"days_ago": 31},
            {"wing": "other"},
            {"archived_at": NOW},
            {"quarantined_at": NOW},
            {"muted_at": NOW},
            {"valid_until": NOW - timedelta(hours=1)},
            {"days_ago": -1},
        ],
    )
    def test_what_is_old_elsewhere_unseen_or_later_is_none(self, as_alice, given):
        told(as_alice, EARLIER, **given)
        say(as_alice, LATER)
        assert written(as_alice) == []

    def test_only_the_latest_fifty_are_looked_at(self, as_alice):
        old = told(as_alice, EARLIER, days_ago=2)
        for number in range(causes.LOOK_BACK):
            told(as_alice, f"Note {number}.", embedding=old.embedding)
        say(as_alice, LATER)
        assert written(as_alice) == []

    def test_two_of_one_conversation_are_joined_in_the_order_they_were_said(self, as_alice):
        facts = [Fact(text=text, memory_type="fact") for text in (EARLIER, LATER)]
        vectors = embeddings.embed([meaning(fact.text) for fact in facts])
        storage.lock(as_alice)
        ids = storage.place(as_alice, facts, vectors, at=NOW, use_day=1, segment_id=uuid4())
        (link,) = written(as_alice)
        assert (link.source_id, link.target_id) == (ids[1], ids[0])

    def test_what_is_known_already_gets_no_second_link(self, as_alice):
        told(as_alice, EARLIER)
        say(as_alice, LATER)
        facts = [Fact(text=LATER, memory_type="fact")]
        vectors = embeddings.embed([LATER])
        storage.lock(as_alice)
        storage.place(as_alice, facts, vectors, at=timezone.now(), use_day=1, segment_id=None)
        assert len(written(as_alice)) == 1

    def test_somebody_elses_memory_is_never_an_end(self, alice, bob, acting):
        with acting(alice):
            told(alice, EARLIER)
        with acting(bob):
            say(bob, LATER)
            assert written(bob) == []
        with acting(alice):
            assert written(alice) == []

    def test_what_reads_like_an_instruction_is_held_back_unlinked(self, as_alice):
        told(as_alice, EARLIER)
        new = told(as_alice, LATER, days_ago=0, quarantined_at=NOW)
        assert causes.link(as_alice, [new], at=timezone.now()) == []

    def test_that_points_only_at_what_is_plainly_meant(self, as_alice):
        near = told(as_alice, "I had a quarrel with Anna about the party.")
        say(as_alice, "I had a quarrel with Anna about the party and left because of that.")
        (link,) = written(as_alice)
        assert link.target_id == near.id
        say(as_alice, "I stayed at home because of that.")
        assert len(written(as_alice)) == 1


class TestSupersedes:
    OLDER = "Le contrat de 2024 prévoit trente jours de congés."
    NEWER = "Le nouveau contrat remplace le contrat de 2024."

    def test_the_older_stays_true_is_labelled_and_ranks_lower(self, as_alice):
        older = told(as_alice, self.OLDER)
        newer = say(as_alice, self.NEWER)
        older.refresh_from_db()
        assert older.valid_until is None
        now = timezone.now()
        assert Memory.objects.for_user(as_alice).visible(now).filter(id=older.id).exists()
        found = {one.id: one for one in selectors.recall(as_alice, "contrat congés", now=now)}
        assert found[older.id].replaced_by == (newer.id,)
        assert not found[older.id].is_past

    def test_what_is_vital_never_gives_way_to_a_cue(self, as_alice):
        told(as_alice, self.OLDER, stakes=Stakes.VITAL)
        say(as_alice, self.NEWER)
        assert written(as_alice) == []

    def test_hearsay_never_speaks_against_the_persons_word(self, as_alice):
        told(as_alice, self.OLDER)
        newer = told(as_alice, self.NEWER, days_ago=0, trust=Trust.OUTSIDE)
        assert causes.link(as_alice, [newer], at=timezone.now()) == []

    def test_what_says_so_outright_still_makes_it_past(self, as_alice):
        older = told(as_alice, self.OLDER)
        newer = say(as_alice, self.NEWER)
        truth.supersede(as_alice, newer.id, older.id, at=NOW, reasoning="It is so.", author="model")
        older.refresh_from_db()
        (link,) = written(as_alice)
        assert older.valid_until is not None
        assert (link.author, link.reasoning) == ("model", "It is so.")

    def test_a_conflict_can_be_opened_over_it(self, as_alice):
        older = told(as_alice, self.OLDER)
        newer = say(as_alice, self.NEWER)
        truth.conflict(as_alice, older.id, newer.id, reasoning="Which one?", at=NOW)
        (link,) = written(as_alice)
        assert link.link_type == "conflicts"

    def test_taking_the_newer_back_leaves_what_was_never_past(self, as_alice):
        older = told(as_alice, self.OLDER)
        newer = say(as_alice, self.NEWER)
        newest = told(as_alice, "Contrat de 2027.", days_ago=0)
        truth.supersede(as_alice, newest.id, newer.id, at=NOW, reasoning="Newer.")
        services.forget(user=as_alice, memory_id=newer.id)
        older.refresh_from_db()
        assert older.valid_until is None
        assert written(as_alice) == []


def test_the_model_still_looks_at_what_only_a_cue_joined(as_alice):
    cause = told(as_alice, EARLIER)
    new = say(as_alice, LATER)
    hints = links.hints(as_alice, [new.id], now=timezone.now())[new.id]
    assert [hint.memory_id for hint in hints] == [cause.id]
    services.confirm_link(
        user=as_alice, memory_id=new.id, link_id=written(as_alice)[0].id, at=timezone.now()
    )
    assert links.hints(as_alice, [new.id], now=timezone.now())[new.id] == []


def test_without_a_cue_nothing_is_asked_of_the_database(as_alice, django_assert_num_queries):
    plain = told(as_alice, "I like tea.")
    with django_assert_num_queries(0):
        assert causes.link(as_alice, [plain], at=NOW) == []


def test_many_memories_cost_as_much_as_one(as_alice, django_assert_num_queries):
    told(as_alice, EARLIER)
    many = [told(as_alice, f"{LATER} Number {number}.", days_ago=0) for number in range(5)]
    with django_assert_num_queries(3):
        assert len(causes.link(as_alice, many, at=timezone.now())) == 5


def test_a_link_of_the_persons_is_never_overwritten(as_alice):
    cause = told(as_alice, EARLIER)
    new = told(as_alice, LATER, days_ago=0)
    links.connect(
        as_alice, new.id, cause.id, link_type="refines", reasoning="I say so.",
        author="person", at=NOW,
    )  # fmt: skip
    causes.link(as_alice, [new], at=timezone.now())
    (link,) = written(as_alice)
    assert link.link_type == "refines"


def test_links_die_with_the_memory(as_alice):
    told(as_alice, EARLIER)
    new = say(as_alice, LATER)
    services.forget(user=as_alice, memory_id=new.id)
    assert written(as_alice) == []


def test_a_conversation_that_is_read_without_a_model_gets_its_links(as_alice, segment):
    segment.said(
        "The database server of the club is almost out of disk space.",
        "My sister Clara lives in Hamburg.",
        "The website of the club failed because the database server ran out of disk space.",
    )
    services.remember(
        user=as_alice, segment_id=segment.id, messages=segment.messages, at=timezone.now()
    )
    (link,) = written(as_alice)
    ends = dict(Memory.objects.for_user(as_alice).values_list("id", "text"))
    assert link.link_type == "because"
    assert "failed because" in ends[link.source_id]
    assert "almost out of disk space" in ends[link.target_id]
