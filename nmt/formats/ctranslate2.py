"""CTranslate2 (https://opennmt.net/CTranslate2): an inference engine in C++ for Transformers."""

from pathlib import Path

from nmt.checkpoint import Checkpoint
from nmt.config import TransformerConfig
from nmt.formats import ExportError, Options, write_description


def export(checkpoint: Checkpoint, folder: Path, options: Options) -> None:
    """Write the model of a checkpoint into an empty folder.

    Raises:
        ExportError: the model is no Transformer.
    """
    if not isinstance(checkpoint.config.model, TransformerConfig):
        raise ExportError("not a Transformer")
    write_description(folder, checkpoint, "ctranslate2", {"quantization": options.quantization})
