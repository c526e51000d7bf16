"""The table that a preparation ends in."""

from collections.abc import Iterator
from typing import Any


def table(report: dict[str, Any]) -> Iterator[str]:
    """Lines of the report: pairs read, kept and dropped by reason, what overlaps, what was removed."""
    yield f"{'split':<12}{'read':>12}{'kept':>12}{'dropped':>10}  reasons"
    for name, split in report["splits"].items():
        words = {"empty": "with an empty side", "too_long": f"over {report['max_length']} subwords"}
        reasons = ", ".join(f"{count:,} {words[reason]}" for reason, count in split["dropped"].items() if count)
        dropped = split["read"] - split["kept"]
        yield f"{name:<12}{split['read']:>12,}{split['kept']:>12,}{dropped:>10,}  {reasons or '-'}"
    for name, split in report["splits"].items():
        yield from _notes(name, split, training=name == "train")
    for name, counts in report["overlap"].items():
        read = report["splits"][name]["read"]
        yield (
            f"{name}: {counts['source']:,} of {read:,} sources occur in training too, "
            f"{counts['pair']:,} with the same translation"
        )
    vocabulary = report["vocabulary"]
    sizes = f"{vocabulary['source']:,}" + (" joint" if vocabulary["joint"] else f" + {vocabulary['target']:,}")
    yield f"vocabulary: {sizes} pieces, sha256 {vocabulary['sha256'][:16]}"


def _notes(name: str, split: dict[str, Any], training: bool) -> Iterator[str]:
    notes = [
        (split["control_characters"], "control characters removed"),
        (split["blank"] if not training else 0, "pairs with an empty side, kept"),
        (split["duplicates"], "pairs repeat an earlier one, kept"),
        (split["unknown"]["source"], "unknown source subwords"),
        (split["unknown"]["target"], "unknown target subwords"),
    ]
    found = [f"{count:,} {what}" for count, what in notes if count]
    if found:
        yield f"{name}: {'; '.join(found)}"
