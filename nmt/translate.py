"""Translate text with a trained model, one line in, one line out.

    python -m nmt.translate --checkpoint runs/demo_bahdanau_s1 --beam-size 5 < in.txt > out.txt
    python -m nmt.translate --checkpoint runs/a runs/b --input in.txt --output out.txt    # an ensemble
    python -m nmt.translate --checkpoint exported < in.txt    # what nmt.export wrote for ctranslate2

Text is UTF-8 whatever the locale; only \\n ends a line; a blank line gives a blank line. Translations go to stdout, and
nothing else; a summary goes to stderr.

--output-format text: the translation. With --n-best above 1, a line for each of its entries, best first (samples: in
    the order of drawing):
    INPUT LINE, FROM 0 ||| TRANSLATION ||| SCORE
  With --align hard one more column, the last: word links in Pharaoh format, SOURCE WORD-TARGET WORD, both from 0, as in
    TRANSLATION ||| 0-0 1-2
  and nothing on either side of the bars for a blank line
--output-format json: an object for each input line, {"source": ..., "source_tokens" (subwords), "translations": [
    {"text", "score", "log_probability", "log_probability_per_token", "tokens" (subwords), "length" (|y|),
    "finished" (false: cut at the length limit)}, ...]}, and in each translation
  --token-scores: "token_log_probabilities" of its |y| subwords, EOS the last of them
  --align hard: "alignment" (Pharaoh format), "attention": {"layer", "layers", "head", "heads"} that it is read from
  --align soft: both, and in "attention" the weights: "weights" [target_tokens][source_tokens] of subwords, and
    "word_weights" [target_words][source_words], summed over a source word's subwords and averaged over a target word's

A word is what stands between spaces in the line as it was given and in the translation as it is written. Row t is what
was looked at when target token t was chosen. A target word is linked to the source word of most weight; weight on EOS
is left out of account. Attention weights are coefficients of the computation, not explanations.
"""

import sys
from pathlib import Path

from nmt.alignment import AttentionChoice, Which
from nmt.checkpoint import load_config, resolve
from nmt.cli import (
    CommandParser,
    add_align_arguments,
    add_checkpoint_argument,
    add_device_arguments,
    add_sampling_arguments,
    add_search_arguments,
    run,
    sampling,
    search_config,
    stdin_bytes,
)
from nmt.data.corpus import decode_lines, read_lines
from nmt.device import keep_freed_memory, limit_threads
from nmt.formats import is_exported
from nmt.output import Format, Summary, whole_file
from nmt.search import check
from nmt.translator import BUFFER_LINES, Translator


def parser() -> CommandParser:
    """Command line of ``nmt.translate``."""
    parser = CommandParser("nmt.translate", __doc__)
    add = parser.add_argument
    add_checkpoint_argument(parser, several=True, more="; or what nmt.export wrote for ctranslate2")
    add("--input", type=Path, metavar="FILE", help="text to translate, also .gz, .xz or .zst (default: stdin)")
    add(
        "--target-prefix",
        type=Path,
        metavar="FILE",
        help="line n is what the translation of line n begins with, letter by letter; blank: anything. White space at "
        "its end does not count and its last word may go on: end it where a word ends or inside one",
    )
    add(
        "--output",
        type=Path,
        metavar="FILE",
        help="where to write; appears under this name when it is complete (default: stdout)",
    )
    add("--output-format", choices=["text", "json"], default="text", help="see above (default: %(default)s)")
    add(
        "--n-best",
        type=int,
        default=1,
        metavar="N",
        help="at most the beam size, but with --sample (default: %(default)s)",
    )
    add("--token-scores", action="store_true", help="also the log probability of each subword; needs json")
    add(
        "--align",
        choices=["hard", "soft"],
        help="also where the model looked: word links, or the weights as well (needs json); not for several models, "
        "nor for seq2seq, which reads one fixed vector",
    )
    add_align_arguments(parser)
    add(
        "--buffer-size",
        type=int,
        default=BUFFER_LINES,
        metavar="LINES",
        help="read, sorted by length and answered at a time; 1 answers each line as it comes (default: %(default)s)",
    )
    add(
        "--shortlist",
        type=Path,
        metavar="FILE",
        help="what nmt.shortlist made for this model: translations are searched for among the subwords that the "
        "sentence may need, which is faster",
    )
    add_search_arguments(parser)
    add_sampling_arguments(parser)
    add_device_arguments(parser)
    add(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="processes that translate, on the CPU: with one thread each they are faster than threads "
        "(default: %(default)s)",
    )
    add("--threads", type=int, metavar="N", help="CPU threads, of each worker (default: all cores, shared out)")
    return parser


def main() -> None:
    arguments = parser().parse_args()
    first = arguments.checkpoint[0]
    config = search_config(arguments, load_config(first if is_exported(first) else resolve(first)).search)
    drawing = sampling(arguments)
    check(config, arguments.n_best, drawing)  # before a model is loaded
    choice = attention_choice(arguments.align, arguments.align_layer, arguments.align_head)
    if drawing is not None and arguments.shortlist is not None:
        raise ValueError("--shortlist: without effect on samples; leave out --shortlist or --sample")
    check_format(arguments.output_format, arguments.align, arguments.token_scores)
    limit_threads(arguments.threads)
    keep_freed_memory()
    translator = Translator.load(
        arguments.checkpoint,
        arguments.device,
        arguments.precision,
        arguments.shortlist,
        arguments.workers,
        arguments.threads,
    )
    answers = translator.stream(
        decode_lines(stdin_bytes(), "stdin") if arguments.input is None else read_lines(arguments.input),
        config,
        n_best=arguments.n_best,
        buffer_size=arguments.buffer_size,
        prefixes=None if arguments.target_prefix is None else read_lines(arguments.target_prefix),
        sampling=drawing,
        token_scores=arguments.token_scores,
        alignment=choice,
    )
    form = Format(arguments.output_format, arguments.n_best > 1, arguments.token_scores, arguments.align)
    summary = Summary()
    with whole_file(arguments.output) as output:
        for number, answer in enumerate(summary.count(answers)):
            output.writelines(form.lines(number, answer))
            if number % arguments.buffer_size == arguments.buffer_size - 1:
                output.flush()
    translator.close()
    print(summary, file=sys.stderr)


def attention_choice(align: str | None, layer: Which | None, head: Which | None) -> AttentionChoice | None:
    """Whose attention to look at, if any.

    Raises:
        ValueError: a layer or a head, but no alignment.
    """
    if align is not None:
        return AttentionChoice(layer, "mean" if head is None else head)
    for name, value in (("layer", layer), ("head", head)):
        if value is not None:
            raise ValueError(f"--align-{name}: without effect unless alignments are written; add --align hard or soft")
    return None


def check_format(output_format: str, align: str | None, token_scores: bool) -> None:
    """Refuse what a line of text has no place for.

    Raises:
        ValueError: naming the option.
    """
    if output_format == "text":
        for option, wanted in (("--align soft", align == "soft"), ("--token-scores", token_scores)):
            if wanted:
                raise ValueError(f"{option}: a line of text has no place for it; add --output-format json")


if __name__ == "__main__":
    run(main)
