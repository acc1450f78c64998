"""Which words propose a relation, and which everyday ones do not."""

from __future__ import annotations

import pytest

from memory.cues import cues


def relations(text):
    return [cue.relation for cue in cues(text)]


@pytest.mark.parametrize(
    ("text", "relation", "words"),
    [
        ("Following the outage we added a server.", "triggered", ("outage",)),
        ("We added a second server following the outage.", "triggered", ("outage",)),
        ("After the outage, we added a server.", "triggered", ("outage",)),
        ("We added a server in response to the outage.", "triggered", ("outage",)),
        ("The alarm was triggered by smoke.", "triggered", ("smoke",)),
        ("I quit because the commute was too long.", "because", ("commute",)),
        ("Since the landlord raised the rent, I look for a flat.", "because", None),
        ("The delay is due to the strike.", "because", ("strike",)),
        ("The train was late as a result of the strike.", "because", ("strike",)),
        ("Anna's report contradicts the auditor.", "conflicts", ("auditor",)),
        ("The plan conflicts with the budget.", "conflicts", ("budget",)),
        ("His story is inconsistent with the log.", "conflicts", ("log",)),
        ("Version 2 updates the price list.", "supersedes", ("price", "list")),
        ("The new contract replaces the contract of 2024.", "supersedes", ("contract", "2024")),
        ("This plan supersedes the plan of March.", "supersedes", ("plan", "march")),
        ("The patch resolves the login bug.", "resolves", ("login", "bug")),
        ("The patch solves the login bug.", "resolves", ("login", "bug")),
        ("The patch fixes the login bug.", "resolves", ("login", "bug")),
        ("The patch addresses the login bug.", "resolves", ("login", "bug")),
        ("Suite à la panne, nous avons ajouté un serveur.", "triggered", ("panne",)),
        ("À la suite de la panne, nous avons changé.", "triggered", ("panne",)),
        ("Consécutivement à la panne, nous avons changé.", "triggered", ("panne",)),
        ("Après la panne, nous avons ajouté un serveur.", "triggered", ("panne",)),
        ("Je pars parce que le loyer a augmenté.", "because", ("loyer", "augmenté")),
        ("Je pars car le loyer a augmenté.", "because", ("loyer", "augmenté")),
        ("En raison de la grève, je suis en retard.", "because", ("grève",)),
        ("J'ai un logement grâce à Anna.", "because", ("anna",)),
        ("Le rapport d'Anna contredit le bilan.", "conflicts", ("bilan",)),
        ("Ce plan est incompatible avec le budget.", "conflicts", ("budget",)),
        ("Ma sœur s'oppose à la vente de la maison.", "conflicts", ("vente", "maison")),
        ("Ce plan met à jour le plan de mars.", "supersedes", ("plan", "mars")),
        ("Le contrat remplace le contrat de 2024.", "supersedes", ("contrat", "2024")),
        ("Cette liste actualise les prix.", "supersedes", ("prix",)),
        ("Le correctif résout la panne.", "resolves", ("panne",)),
        ("Le correctif règle la panne.", "resolves", ("panne",)),
        ("Le correctif corrige la panne.", "resolves", ("panne",)),
        ("Le correctif solutionne la panne.", "resolves", ("panne",)),
    ],
)
def test_every_cue_proposes_its_relation_and_what_it_is_about(text, relation, words):
    (cue,) = cues(text)
    assert cue.relation == relation
    assert words is None or cue.words == words


@pytest.mark.parametrize(
    "text",
    [
        "I went for a run after work.",
        "After lunch I called Anna.",
        "I always have coffee after breakfast.",
        "I look after my sister's cat.",
        "My daughter is named after her grandmother.",
        "The day after the party I was tired.",
        "See you after six.",
        "I am following the news about the election.",
        "The following day we went home.",
        "I have lived in Berlin since 2019.",
        "I've been a vegetarian since I was twelve.",
        "It has been quiet ever since the move.",
        "The bus is due to arrive at nine.",
        "It is not because of the money.",
        "It isn't because of the money.",
        "I get updates on the weather.",
        "The shop replaces broken parts.",
        "Bug fixes take me a whole morning.",
        "Please note the addresses of the two hotels.",
        "I have conflicts with my boss.",
        "I hope the patch fixes the login bug.",
        "However, I prefer tea.",
        "I keep following my dreams.",
        "I'm after a new sofa.",
        "What will you do after the exams?",
        "I saw her after being away.",
        "My car is red and the seats are black.",
        "J'ai pris un car pour Lyon.",
        "La règle est simple : pas de téléphone à table.",
        "Après le déjeuner, je fais une sieste.",
        "Je vais courir après le travail.",
        "Rendez-vous demain après-midi avec Paul.",
        "D'après Paul, il va pleuvoir.",
        "Ce n'est pas parce que je suis triste.",
        "Je remplace Marie le lundi.",
        "J'habite à Berlin avec ma sœur.",
    ],
)
def test_an_everyday_sentence_has_no_cue(text):
    assert relations(text) == []


def test_a_french_cue_is_none_in_another_language():
    assert relations("The car that I bought is in the garage.") == []


def test_an_accent_is_part_of_a_cue():
    assert relations("Apres la panne, nous avons ajouté un serveur.") == []


def test_a_cue_is_read_inside_the_frame_of_a_quotation():
    assert relations("Alice said: “I quit because the commute was too long.”") == ["because"]
    assert relations("Alice said: “I quit.” (“today” is a day after the strike)") == []


def test_a_cue_that_names_nothing_only_points():
    (cue,) = cues("I called Anna because of that.")
    assert (cue.relation, cue.words) == ("because", ())


def test_a_clause_ends_where_somebody_else_begins():
    (cue,) = cues("Because the supplier went bankrupt we are late.")
    assert cue.words == ("supplier", "bankrupt")


def test_inflections_are_alike_and_other_words_are_not():
    (cue,) = cues("I called a plumber because the tap leaks.")
    assert cue.is_about("The tap in the kitchen is leaking.")
    assert not cue.is_about("I had to tape the leaflet.")
    (cue,) = cues("This plan supersedes the plan of 2024.")
    assert not cue.is_about("The year 2025 was good.")
