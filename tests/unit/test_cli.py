"""Options of the commands as configurations."""

import dataclasses
import re

import pytest

from nmt.cli import CommandParser, add_sampling_arguments, add_search_arguments, default_search, sampling, search_config
from nmt.config import Sampling, SearchConfig


def parsed(*arguments: str):
    parser = CommandParser("nmt.x", None)
    add_search_arguments(parser)
    add_sampling_arguments(parser)
    return parser.parse_args(arguments)


def test_every_search_option_arrives():
    usual = default_search()
    assert search_config(parsed(), usual) == usual
    changed = SearchConfig(
        beam_size=3,
        length_penalty="simple",
        alpha=0.5,
        min_length=2,
        max_length_a=1.5,
        max_length_b=7,
        patience=1.5,
        no_repeat_ngram=4,
        forbid_unk=True,
        batch_tokens=99,
    )
    arguments = [
        *("--beam-size", "3", "--length-penalty", "simple", "--alpha", "0.5", "--min-length", "2"),
        *("--max-length-a", "1.5", "--max-length-b", "7", "--no-repeat-ngram", "4", "--forbid-unk"),
        *("--batch-tokens", "99", "--patience", "1.5"),
    ]
    assert search_config(parsed(*arguments), usual) == changed
    assert all(getattr(usual, field.name) != getattr(changed, field.name) for field in dataclasses.fields(usual))


def test_help_says_every_default_in_words():
    parser = CommandParser("nmt.x", None)
    add_search_arguments(parser)
    text = " ".join(parser.format_help().split())
    defaults = re.findall(r"\(default: ([^)]+)\)", text)
    assert len(defaults) == len(dataclasses.fields(SearchConfig))
    assert not {"None", "False", "True"} & set(defaults)
    assert defaults.count("off") == 2  # patience, forbid_unk


def test_sampling_options_arrive():
    assert sampling(parsed()) is None
    assert sampling(parsed("--sample")) == Sampling(temperature=1.0, top_k=0, top_p=1.0, seed=1)
    arguments = ["--sample", "--temperature", "0.7", "--top-k", "9", "--top-p", "0.95", "--seed", "0"]
    assert sampling(parsed(*arguments)) == Sampling(temperature=0.7, top_k=9, top_p=0.95, seed=0)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--temperature", "1.0"], "--temperature: "),
        (["--top-k", "0", "--seed", "1"], "--top-k, --seed: "),
        (["--top-p", "0.5"], "--top-p: "),
        (["--sample", "--beam-size", "5"], "--beam-size: .*--n-best"),
    ],
)
def test_options_without_effect_are_refused_by_name(arguments, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        sampling(parsed(*arguments))
