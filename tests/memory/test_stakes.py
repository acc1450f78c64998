from __future__ import annotations

import pytest

from memory import stakes
from memory.models import Stakes


@pytest.mark.parametrize(
    "text",
    [
        "I am allergic to nuts.",
        "Meine Schwester ist gegen Nüsse allergisch.",
        "Je suis allergique aux noix.",
        "Soy alérgico a las nueces.",
        "I take insulin twice a day.",
        "Ich nehme Medikamente gegen Bluthochdruck.",
        "Anna's birthday is on 3 May.",
        "Mein Geburtstag ist am 3. Mai.",
        "Mon anniversaire est le 3 mai.",
        "Mi cumpleaños es el 3 de mayo.",
        "In an emergency call my neighbour.",
        "I promised Ben to be there.",
        "Please never call me Ali.",
        "I must never eat grapefruit.",
        "My daughter is called Mia.",
        "Meine Frau heißt Eva.",
        "Ma fille s'appelle Mia.",
        "Mi hijo se llama Leo.",
        "My mother died in 2019.",
    ],
)
def test_health_safety_promises_and_the_closest_are_vital(text):
    assert stakes.of(text) == Stakes.VITAL


@pytest.mark.parametrize(
    "text",
    [
        "I need to buy milk.",
        "I had soup for lunch.",
        "Ich muss noch Brot kaufen.",
        "Je dois acheter du pain.",
        "Tengo que comprar pan.",
        "I'm tired.",
    ],
)
def test_errands_and_passing_moments_are_trivial(text):
    assert stakes.of(text) == Stakes.TRIVIAL


@pytest.mark.parametrize(
    "text",
    [
        "My boat is called Merula.",
        "I always have coffee in the morning.",
        "I have never been to Rome.",
        "Ich wohne in Graz.",
        "私の犬の名前はハチです。",
    ],
)
def test_the_rest_is_ordinary(text):
    assert stakes.of(text) == Stakes.ORDINARY


def test_an_errand_for_the_sake_of_health_is_vital():
    assert stakes.of("I need to buy my insulin.") == Stakes.VITAL
