"""What the keys of a Hub data set mean together: directions and names of pairs, samples, held-out cuts."""

from nmt.config import ConfigError, HubData

ROLES = ("train", "validation", "test")

AUTO = "auto"
"""``data.pair``: the configuration that is named after the two languages, in whichever order."""

_OTHERS = {"bentrevett/multi30k": "data.dataset=romrawinjp/multi30k has en, de, fr and cs"}
"""Where else there are languages that a data set lacks."""


def check_hub(config: HubData) -> None:
    """Refuse keys that contradict each other or do nothing.

    Raises:
        ConfigError: naming the key.
    """
    without = [name for name in ROLES[1:] if getattr(config.splits, name) is None]
    if config.held_out_pairs is None:
        if "validation" in without:
            raise ConfigError(
                "data.splits.validation: null; name a split, or have data.held_out_pairs cut from the training split"
            )
    elif config.held_out_pairs < 1:
        raise ConfigError(f"data.held_out_pairs: expected 1 or more, or null, found {config.held_out_pairs}")
    elif not without:
        raise ConfigError(
            "data.held_out_pairs: nothing to cut: data.splits names both validation and test (null: cut it from train)"
        )


def is_sampled(config: HubData) -> bool:
    """Whether training gets a sample from all over the corpus, not its first pairs or all of it."""
    return config.max_pairs is not None and config.sample_seed is not None


def config_names(config: HubData) -> list[str | None]:
    """Names under which the Hub may have the pair: as it is written, and the other way round."""
    if config.pair is None:
        return [None]
    first = f"{config.target}-{config.source}" if config.pair == AUTO else config.pair
    return list(dict.fromkeys([first, "-".join(reversed(first.split("-")))]))


def missing_language(config: HubData, language: str) -> str:
    """What to say where a data set lacks a language."""
    key = "source" if language == config.source else "target"
    asked = "" if config.pair in (None, AUTO) else f" in data.pair={config.pair}"
    hint = _OTHERS.get(config.dataset)
    return f"data.{key}: no {language!r} here{asked}" + (f" ({hint})" if hint else "")
