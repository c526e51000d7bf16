"""The table that a preparation ends in."""

from collections.abc import Iterator
from typing import Any


def table(report: dict[str, Any]) -> Iterator[str]:
    """Lines of the report: pairs read, kept and dropped by reason, stage by stage; what overlaps, what was removed."""
    words = report["reasons"]
    yield f"{'split':<14}{'read':>12}{'kept':>12}{'dropped':>12}  reasons"
    for name, split in report["splits"].items():
        yield _row(name, split["read"], split["kept"], split["dropped"], words)
    if any(stage["dropped"] for stage in report["stages"]):
        yield f"{'stage':<14}{'in':>12}{'out':>12}{'dropped':>12}  reasons"
        for stage in report["stages"]:
            yield _row(stage["stage"], stage["in"], stage["out"], stage["dropped"], words)
    for name, split in report["splits"].items():
        yield from _notes(name, split, training=name == "train")
    found = report["splits"]["train"]["held_out"]
    if any(found.values()):
        yield (
            f"train: behind the filters {found['source']:,} sources, {found['target']:,} targets and {found['pair']:,} "
            "pairs occurred in validation or test"
        )
    for name, counts in report["overlap"].items():
        read = report["splits"][name]["read"]
        yield (
            f"{name}: {counts['source']:,} of {read:,} sources occur in training too, "
            f"{counts['pair']:,} with the same translation; {counts['target']:,} of {read:,} targets do"
        )
    if len(report["parts"]) > 1:
        for part in report["parts"]:
            first, end = part["rows"]
            yield f"part {part['name']}: {end - first:,} pairs, weight {part['weight']:g}"
    vocabulary = report["vocabulary"]
    sizes = f"{vocabulary['source']:,}" + (" joint" if vocabulary["joint"] else f" + {vocabulary['target']:,}")
    yield f"vocabulary: {sizes} pieces, sha256 {vocabulary['sha256'][:16]}"


def _row(name: str, before: int, after: int, dropped: dict[str, int], words: dict[str, str]) -> str:
    reasons = ", ".join(f"{words.get(reason, reason)}: {count:,}" for reason, count in dropped.items() if count)
    return f"{name:<14}{before:>12,}{after:>12,}{before - after:>12,}  {reasons or '-'}"


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
