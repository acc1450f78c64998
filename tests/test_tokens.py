import pytest

from mira_site import tokens


def test_nothing_costs_nothing():
    assert tokens.estimate("") == 0


@pytest.mark.parametrize("text", ["Hello, Alice. How are you?", "昨日はとても良い天気でした", "😀"])
def test_text_costs_more_the_longer_it_is(text):
    assert 1 <= tokens.estimate(text) < tokens.estimate(text * 2) <= 2 * tokens.estimate(text)


def test_prose_costs_at_least_a_token_for_three_characters():
    prose = "The estimate errs on the high side, so that a prompt that should fit does fit. " * 20
    assert len(prose) / 3 <= tokens.estimate(prose) <= len(prose) / 2


def test_a_character_outside_ascii_counts_as_a_token():
    assert tokens.estimate("昨日はとても良い天気でした") >= len("昨日はとても良い天気でした")
