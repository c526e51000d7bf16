"""The import order of the design: each layer may import only from layers to its right."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent.parent / "nmt"

LAYERS = [
    {"commands"},
    {"composition"},  # what the commands that Hydra composes for share
    {"analysis"},
    {"training"},
    {"output", "scorer"},
    {"evaluation", "translator"},
    {"formats"},  # what other programs read: written, and run
    {"averaging"},
    {"checkpoint"},
    {"older_keys"},
    {"translation"},
    {"alignment", "workers"},
    {"engine"},
    {"forced"},
    {"search"},
    {"constraints", "largest", "lengths", "lexicon", "sampling"},
    {"models", "data"},
    {"device", "cli", "machine"},
    {"config"},
    {"parse"},
    {"tokens"},
]
COMMANDS = {"train", "prepare", "translate", "score", "evaluate", "compare", "diagnose", "benchmark"}
COMMANDS |= {"export", "average", "shortlist"}
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
FILES = sorted(PACKAGE.rglob("*.py"))


def layer_of(module: str) -> str:
    """The layer of ``nmt.x.y``: its second part, or ``commands``."""
    name = module.split(".")[1]
    return "commands" if name in COMMANDS else name


def same_command(one: str, other: str) -> bool:
    """A command may be several files, in a folder of its name."""
    return one.split(".")[1] == other.split(".")[1]


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> list[tuple[str, bool]]:
    """Every imported module as (dotted name, whether at the top level of the file)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {id(node) for node in tree.body}
    found: list[tuple[str, bool]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            names = [node.module]
            if node.module == "nmt":
                modules = [name for alias in node.names for name in (alias.name, f"{alias.name}.py")]
                names = [f"nmt.{name.removesuffix('.py')}" for name in modules if (PACKAGE / name).exists()]
            found += [(name, id(node) in top) for name in names]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_only_from_the_right(path: Path) -> None:
    module = module_of(path)
    if module == "nmt":  # names of the public interface, looked up when they are asked for
        assert not [name for name, at_top in imports(path) if at_top and name.startswith("nmt")]
        return
    own = layer_of(module)
    assert own in RANK, f"{module} belongs to no layer: add it to the order or move it"
    for name, _ in imports(path):
        if not name.startswith("nmt."):
            continue
        other = layer_of(name)
        if own == "commands":
            assert other != "commands" or same_command(module, name), f"{module} imports the command {name}"
        if other == own:
            continue
        assert RANK[other] > RANK[own], f"{module} ({own}) may not import {name} ({other})"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_heavy_libraries_stay_where_they_belong(path: Path) -> None:
    layer = layer_of(module_of(path)) if module_of(path) != "nmt" else "nmt"
    for name, at_top in imports(path):
        root = name.split(".")[0]
        if root in ("hydra", "omegaconf"):
            assert layer in ("commands", "composition"), f"{path.name}: only commands import {root}"
        if root in ("datasets", "huggingface_hub"):
            assert layer == "data", f"{path.name}: only data imports {root}"
            assert not at_top, f"{path.name}: {root} must be imported where it is used"


def test_import_nmt_imports_nothing_else() -> None:
    """A program that only asks for the version, or for one command, does not wait for torch."""
    code = """
import sys
before = set(sys.modules)
import nmt
assert nmt.__version__
assert "Translator" in dir(nmt)
print(*sorted(name for name in set(sys.modules) - before if not name.startswith("nmt")))
print(nmt.Translator.__module__, "torch" in sys.modules)
from nmt import *
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    extra, public = done.stdout.splitlines()
    assert "torch" not in extra.split()
    assert public == "nmt.translator True"


def test_an_unknown_name_of_the_package_is_an_attribute_error() -> None:
    import nmt

    with pytest.raises(AttributeError, match="Abacus"):
        nmt.Abacus  # noqa: B018


def test_the_core_needs_only_four_libraries() -> None:
    """Models, search, translation and training import with nothing but torch, sentencepiece, sacrebleu, safetensors."""
    code = """
import sys
for name in ("hydra", "omegaconf", "datasets", "huggingface_hub", "tensorboard", "matplotlib", "tqdm", "zstandard"):
    sys.modules[name] = None
import nmt.models, nmt.search, nmt.checkpoint, nmt.translator, nmt.training.trainer, nmt.evaluation.metrics
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
