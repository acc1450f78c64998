from __future__ import annotations

from memory.sentences import best_sentence, prose, sentences


def test_sentences_end_at_marks_and_line_breaks():
    assert sentences("I sail. My boat is Merula!\nIt is red") == [
        "I sail.",
        "My boat is Merula!",
        "It is red",
    ]


def test_an_abbreviation_an_initial_or_a_german_date_ends_no_sentence():
    for text in ("I see Dr. Weber today.", "J. Doe is my boss.", "Am 3. Mai heirate ich."):
        assert sentences(text) == [text]


def test_a_number_at_the_end_of_a_sentence_ends_it():
    assert sentences("I am 34. My dog is 3.") == ["I am 34.", "My dog is 3."]


def test_wide_full_stops_need_no_space():
    assert sentences("犬がいます。名前はハチです。") == ["犬がいます。", "名前はハチです。"]


def test_bullets_are_not_part_of_a_sentence():
    assert sentences("- I sail\n2. I row\n# My life") == ["I sail", "I row", "My life"]


def test_code_and_quoted_lines_are_not_prose():
    text = "I sail.\n```python\nI = 'am code'\n```\n> I was forwarded\n    indented = 1\nI row."
    assert sentences(prose(text)) == ["I sail.", "I row."]


def test_an_unclosed_fence_runs_to_the_end():
    assert sentences(prose("I sail.\n```\nI am code.")) == ["I sail."]


def test_the_best_sentence_shares_most_words():
    text = "Hello there. My boat is called Merula. Bye now."
    assert best_sentence(text, "Alice's boat is called Merula.") == "My boat is called Merula."
