"""Score given translations with a trained model: log p(target line | source line).

    python -m nmt.score --checkpoint runs/demo_bahdanau_s1 --source test.en --target test.de > scores.txt
    python -m nmt.score --checkpoint runs/a runs/b --source test.en --target test.de    # an ensemble

--output-format text: a line for each pair, with tabs between
    LOG PROBABILITY   SUBWORDS, EOS INCLUDED   LOG PROBABILITY PER SUBWORD   PERPLEXITY
--output-format json: an object for each pair, {"source", "target", "log_probability", "length" (subwords and EOS),
    "log_probability_per_token", "perplexity", "tokens" (target subwords), "token_log_probabilities" (EOS the last)}

Logarithms are natural, perplexity is exp(-log probability per subword). A blank line is a sentence of no words, EOS
alone, as in training's validation, whose perplexity this gives for the same pairs. An ensemble's log probabilities are
the means of its models'. A summary of all pairs goes to stderr, with json as an object: perplexity per subword; per
word and per byte of the target lines as they are, which models with different subwords can be compared by (the end of a
line counts as one word and as one byte).
"""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from nmt.cli import CommandParser, add_checkpoint_argument, add_device_arguments, run
from nmt.data.corpus import in_step, read_lines
from nmt.device import limit_threads
from nmt.evaluation.likelihood import Likelihood
from nmt.output import json_line, whole_file
from nmt.scorer import BATCH_TOKENS, PairScore, Scorer
from nmt.translator import BUFFER_LINES


def parser() -> CommandParser:
    """Command line of ``nmt.score``."""
    parser = CommandParser("nmt.score", __doc__)
    add = parser.add_argument
    add_checkpoint_argument(parser, several=True)
    add("--source", type=Path, required=True, metavar="FILE", help="a sentence a line, also .gz, .xz or .zst")
    add("--target", type=Path, required=True, metavar="FILE", help="their translations, line by line")
    add(
        "--output",
        type=Path,
        metavar="FILE",
        help="where to write; appears under this name when it is complete (default: stdout)",
    )
    add("--output-format", choices=["text", "json"], default="text", help="see above (default: %(default)s)")
    add(
        "--buffer-size",
        type=int,
        default=BUFFER_LINES,
        metavar="LINES",
        help="read, sorted by length and scored at a time (default: %(default)s)",
    )
    add(
        "--batch-tokens",
        type=int,
        default=BATCH_TOKENS,
        metavar="N",
        help="tokens a side scored at once; changes speed, not scores (default: %(default)s)",
    )
    add_device_arguments(parser)
    add("--threads", type=int, metavar="N", help="CPU threads (default: torch's choice)")
    return parser


def main() -> None:
    arguments = parser().parse_args()
    limit_threads(arguments.threads)
    for path in (arguments.source, arguments.target):
        if not path.is_file():  # before a model is loaded
            raise ValueError(f"{path}: no such file")
    scorer = Scorer.load(arguments.checkpoint, arguments.device, arguments.precision)
    pairs = in_step(
        read_lines(arguments.source), read_lines(arguments.target), str(arguments.source), str(arguments.target)
    )
    scored = scorer.stream(pairs, arguments.buffer_size, arguments.batch_tokens)
    as_json = arguments.output_format == "json"
    totals = Totals()
    with whole_file(arguments.output) as output:
        for source, target, score in totals.count(scored):
            output.write(pair_line(source, target, score) if as_json else text_line(score))
    print(json.dumps(totals.tree()) if as_json else totals, file=sys.stderr)


def text_line(score: PairScore) -> str:
    """Four columns."""
    return f"{score.log_probability:.6f}\t{score.length}\t{score.per_token:.6f}\t{score.perplexity:.6f}\n"


def pair_line(source: str, target: str, score: PairScore) -> str:
    """One JSON object."""
    tree = {
        "source": source,
        "target": target,
        "log_probability": score.log_probability,
        "length": score.length,
        "log_probability_per_token": score.per_token,
        "perplexity": score.perplexity,
        "tokens": score.tokens,
        "token_log_probabilities": score.token_log_probabilities,
    }
    return json_line(tree)


class Totals:
    """Adds up what goes through ``count``."""

    def __init__(self) -> None:
        self.pairs = self.tokens = self.words = self.bytes = 0
        self.log_probability = 0.0

    def count(self, scored: Iterable[tuple[str, str, PairScore]]) -> Iterator[tuple[str, str, PairScore]]:
        """Pass everything on."""
        for source, target, score in scored:
            self.pairs += 1
            self.tokens += score.length
            self.words += len(target.split()) + 1
            self.bytes += len(target.encode("utf-8")) + 1
            self.log_probability += score.log_probability
            yield source, target, score

    def _perplexity(self, units: int) -> float | None:
        return Likelihood(-self.log_probability, units).perplexity if units else None

    def tree(self) -> dict[str, float | int | None]:
        """Plain values; no perplexity of no pairs."""
        return {
            "pairs": self.pairs,
            "tokens": self.tokens,
            "log_probability": self.log_probability,
            "perplexity": self._perplexity(self.tokens),
            "perplexity_per_word": self._perplexity(self.words),
            "perplexity_per_byte": self._perplexity(self.bytes),
        }

    def __str__(self) -> str:
        if not self.pairs:
            return "0 pairs"
        by = (self._perplexity(units) for units in (self.tokens, self.words, self.bytes))
        subword, word, byte = (f"{value:.4f}" for value in by)
        return (
            f"{self.pairs} pairs, {self.tokens} subwords with EOS, log probability {self.log_probability:.4f}; "
            f"perplexity {subword} per subword, {word} per word, {byte} per byte"
        )


if __name__ == "__main__":
    run(main)
