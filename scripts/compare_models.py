"""Train the three models under one declared budget and set them side by side. Called by ``make compare``.

    python scripts/compare_models.py                                             # embedded data, equal updates
    python scripts/compare_models.py --budget time                               # equal minutes
    python scripts/compare_models.py --data multi30k --seeds 1 2 3 -- data.folder=PATH
    python scripts/compare_models.py --data wmt14 --budget tokens -- data.folder=PATH data.pair=fr-en

Budgets: `steps`, equal updates of batches of as many tokens; `tokens`, equal passes over the data, each model with the
batches of its own recipe; `time`, equal minutes of training; `parameters`, models of equal size, and equal updates. The
fixed-vector model reads its source reversed. Options of nmt.compare can be given with --report.
"""

import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from arms import Arm, add_arguments, check_arguments, train_all, trainings

from nmt.cli import CommandParser, run

MODELS = ("seq2seq", "bahdanau", "transformer")
BEAMS = (1, 2, 4, 8, 12, 32, 64)


class Setting(NamedTuple):
    """Recipes on some data."""

    title: str
    experiment: str  # its name without the model's
    budgets: Mapping[str, tuple[str, ...]]  # what a budget changes for all models
    sizes: Mapping[str, tuple[str, ...]]  # by model, for as many parameters as the transformer has
    seeds: tuple[int, ...]


_NO_END = ("training.max_epochs=null",)
_FEWER = "data.test_pairs=400"  # so that a beam of 64 does not take longer than training

SETTINGS = {
    "demo": Setting(
        "Three architectures on embedded English-German data",
        "demo",
        {
            "steps": ("training.max_steps=400", _FEWER),
            "time": ("training.max_steps=null", "training.max_minutes=3", _FEWER),
            "parameters": ("training.max_steps=400", _FEWER),
        },
        {
            "seq2seq": ("model.embedding_dim=224", "model.hidden_dim=224"),
            "bahdanau": (
                "model.embedding_dim=208",
                "model.maxout_dim=208",
                "model.hidden_dim=216",
                "model.attention_dim=216",
            ),
        },
        (1,),
    ),
    "multi30k": Setting(
        "Three architectures on Multi30k German-English",
        "multi30k_fast",
        {
            "steps": (*_NO_END, "training.max_steps=2400", "training.batch_tokens=1024"),
            "tokens": ("training.max_epochs=7",),
            "time": (*_NO_END, "training.max_minutes=20"),
            "parameters": (*_NO_END, "training.max_steps=2400", "training.batch_tokens=1024"),
        },
        {
            "seq2seq": ("model.tie_embeddings=three-way", "model.embedding_dim=480", "model.hidden_dim=480"),
            "bahdanau": ("model.hidden_dim=440", "model.attention_dim=440"),
        },
        (1, 2, 3),
    ),
    "wmt14": Setting(
        "Three architectures on WMT14 English-French, 300,000 pairs",
        "wmt14_en-fr",
        {"tokens": ()},
        {},
        (1,),
    ),
}


def arms(data: str, budget: str) -> list[Arm]:
    """The three models under a budget.

    Raises:
        ValueError: there is no recipe for it.
    """
    setting = SETTINGS[data]
    if budget not in setting.budgets:
        raise ValueError(f"--budget {budget}: for --data {data} there are recipes for {', '.join(setting.budgets)}")
    own_recipe = not setting.budgets[budget]
    found = []
    for model in MODELS:
        sizes = setting.sizes.get(model, ()) if budget == "parameters" else ()
        tag = f"{setting.experiment}_{model}" if own_recipe else f"{budget}_{model}"
        found.append(Arm(tag, (f"experiment={setting.experiment}_{model}", *setting.budgets[budget], *sizes)))
    return found


def parser() -> CommandParser:
    """Command line of this script."""
    parser = CommandParser("compare_models.py", __doc__)
    add = parser.add_argument
    add("--data", choices=list(SETTINGS), default="demo", help="(default: %(default)s; seeds 1, multi30k: 1 2 3)")
    add("--budget", choices=["steps", "tokens", "time", "parameters"], default="steps", help="(default: %(default)s)")
    add("--beams", type=int, nargs="+", default=list(BEAMS), metavar="K", help="of the beam curve (default: up to 64)")
    add("--report", default="", metavar="OPTIONS", help="for nmt.compare, in quotes")
    add_arguments(parser)
    return parser


def main() -> None:
    arguments = parser().parse_args()
    if arguments.budget == "time" and arguments.jobs is None:
        arguments.jobs = 1  # three models, two at once: one would be alone for a while, and get more of the machine
    check_arguments(arguments)
    setting = SETTINGS[arguments.data]
    runs = arguments.runs or Path("runs") / arguments.data
    seeds = arguments.seeds or setting.seeds
    wanted = trainings(arms(arguments.data, arguments.budget), seeds, runs, arguments.overrides)
    train_all(wanted, arguments.jobs)
    output = arguments.output or runs / f"compare_{arguments.budget}"
    command = [
        *("-m", "nmt.compare", *(str(training.run) for training in wanted)),
        *("--budget", arguments.budget, "--title", setting.title, "--output", str(output)),
        *("--beams", *map(str, arguments.beams), "--jobs", str(arguments.jobs)),
        *shlex.split(arguments.report),
    ]
    sys.exit(_run(command))


def _run(command: list[str]) -> int:
    process = subprocess.Popen([sys.executable, *command])
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # it got the same Ctrl-C
            continue


if __name__ == "__main__":
    run(main)
