"""Sutskever et al.'s ablation (2014, section 3.3): the fixed-vector model with and without its source reversed, all
else equal, beside controls for which the explanation predicts something else. Called by ``make reproduce-reversal``.

    python scripts/reproduce_reversal.py                                        # embedded data, within 15 minutes
    python scripts/reproduce_reversal.py --data multi30k -- data.folder=PATH    # hours
    python scripts/reproduce_reversal.py --data wmt14 -- data.folder=PATH data.pair=fr-en

Controls: the same key on the attention model, whose decoder reads every position; and, on the embedded data, target
sentences in three word orders, which change what lies next to what. The report says more (docs/reversal.md).
"""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from arms import Arm, Training, add_arguments, check_arguments, train_all, trainings

from nmt.analysis.reversal.build import ReversalPair, write_report
from nmt.cli import CommandParser, run


class PairOfArms(NamedTuple):
    """A recipe, and what is told apart beside the reversal."""

    name: str
    model: str
    tag: str  # of the run without reversal; the other's is derived
    overrides: tuple[str, ...]
    word_order: str | None = None
    reversed_tag: str | None = None

    def arm(self, reverse: bool) -> Arm:
        """One of the two."""
        tag = (self.reversed_tag or f"{self.tag}_backwards") if reverse else self.tag
        return Arm(tag, (*self.overrides, f"model.reverse_source={str(reverse).lower()}"))


class Setting(NamedTuple):
    """What is trained on some data."""

    title: str
    main: PairOfArms
    controls: tuple[PairOfArms, ...]
    seeds: tuple[int, ...]
    controls_are_usual: bool = True


def _pair(data: str, model: str, order: str | None = None) -> PairOfArms:
    overrides = [f"experiment=reversal_{data}_{model}", *([f"data.word_order={order}"] if order else [])]
    shown = f", {order} word order" if order else ""
    return PairOfArms(
        f"{model}{shown}", model, f"reversal_{model}{f'_{order}' if order else ''}", tuple(overrides), order
    )


SETTINGS = {
    "demo": Setting(
        "Reversing the source: embedded English-German data",
        _pair("demo", "seq2seq", "german"),
        (
            _pair("demo", "seq2seq", "monotone"),
            _pair("demo", "seq2seq", "reversed"),
            _pair("demo", "bahdanau", "german"),
        ),
        (1, 2, 3),
    ),
    "multi30k": Setting(
        "Reversing the source: Multi30k German-English",
        _pair("multi30k", "seq2seq"),
        (_pair("multi30k", "bahdanau"),),
        (1, 2, 3),
    ),
    "wmt14": Setting(
        "Reversing the source: WMT14 English-French",
        PairOfArms(
            "seq2seq",
            "seq2seq",
            "wmt14_en-fr_seq2seq_unreversed",
            ("experiment=wmt14_en-fr_seq2seq",),
            reversed_tag="wmt14_en-fr_seq2seq",
        ),
        (PairOfArms("bahdanau", "bahdanau", "wmt14_en-fr_bahdanau", ("experiment=wmt14_en-fr_bahdanau",)),),
        (1,),
        controls_are_usual=False,
    ),
}


def parser() -> CommandParser:
    """Command line of this script."""
    parser = CommandParser("reproduce_reversal.py", __doc__)
    add = parser.add_argument
    add("--data", choices=list(SETTINGS), default="demo", help="(default: %(default)s; seeds 1 2 3, wmt14: 1)")
    add("--controls", action="store_true", help="train the controls where that is not usual: wmt14")
    add("--no-controls", action="store_true", help="train the two arms of the fixed-vector model only")
    add_arguments(parser)
    return parser


def main() -> None:
    arguments = parser().parse_args()
    check_arguments(arguments)
    setting = SETTINGS[arguments.data]
    with_controls = (setting.controls_are_usual or arguments.controls) and not arguments.no_controls
    pairs = [setting.main, *(setting.controls if with_controls else ())]
    seeds = arguments.seeds or list(setting.seeds)
    runs = arguments.runs or Path("runs") / arguments.data
    arms = [pair.arm(reverse) for pair in pairs for reverse in (False, True)]
    wanted = trainings(arms, seeds, runs, arguments.overrides)
    train_all(wanted, arguments.jobs)
    print(
        write_report(
            setting.title,
            [_with_runs(pair, wanted) for pair in pairs],
            arguments.output or runs / "reversal_report",
            [shlex.join(["python", *sys.argv])],
            arguments.jobs,
            lambda message: print(message, file=sys.stderr, flush=True),
        ),
        end="",
    )


def _with_runs(pair: PairOfArms, wanted: Sequence[Training]) -> ReversalPair:
    forward, backward = (
        {training.seed: training.run for training in wanted if training.arm == pair.arm(reverse)}
        for reverse in (False, True)
    )
    return ReversalPair(pair.name, pair.model, pair.word_order, forward, backward)


if __name__ == "__main__":
    run(main)
