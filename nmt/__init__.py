"""Neural machine translation, three architectures head to head.

``seq2seq`` (one fixed vector), ``bahdanau`` (a table read by content) and ``transformer`` (a read in every layer)
share one data pipeline, one training loop, one beam search and one score. Start reading at ``nmt/models/base.py``.
"""

__version__ = "0.1.0"
