"""How the house is built: imports go one way, and no module is too long to read."""

import ast
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import fourrates
import fourrates.io

SOURCE = Path(__file__).parents[1] / "src"
LONGEST = 700  # lines: a file ends where its job ends, and is cut before that only if nobody reads it whole


def named(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {named(path): path for suffix in ("py", "pyx") for path in sorted(SOURCE.rglob(f"*.{suffix}"))}


def imported(name, path):
    """The modules of the package that a module imports at its top, those for type checkers too."""
    if path.suffix == ".pyx":
        texts = [one.read_text() for one in (path, path.with_suffix(".pxd"), path.with_suffix(".pyi")) if one.exists()]
        found = set(re.findall(r"^from (fourrates[\w.]*) c?import", "\n".join(texts), re.MULTILINE))
        return {module for module in found if module != name}
    found = set()
    nodes = list(ast.parse(path.read_text()).body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fourrates"):
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            # `from package import module` needs the module; of the package itself only what it defines.
            found |= inner if len(inner) == len(node.names) else inner | {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in MODULES}
        elif isinstance(node, ast.If | ast.Try):
            nodes += node.body + node.orelse
    return {module for module in found if module in MODULES and module != name}


def test_the_graph_of_imports_has_edges():
    assert "fourrates.detectors.base" in imported("fourrates.bank.bank", MODULES["fourrates.bank.bank"])
    assert "fourrates.kernel.record" in imported("fourrates.kernel.pairs", MODULES["fourrates.kernel.pairs"])
    assert len(MODULES) > 50


@pytest.mark.slow
def test_imports_make_no_circle():
    graph = {name: imported(name, path) for name, path in MODULES.items()}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_the_kernel_imports_nothing_but_the_kernel():
    types = {"fourrates.findings", "fourrates.labels"}  # of what it hands through, named in its stubs alone
    for name, path in MODULES.items():
        if name.startswith("fourrates.kernel."):
            outside = {module for module in imported(name, path) if not module.startswith("fourrates.kernel.")}
            assert outside <= types
            assert not any(f"from {module} " in path.read_text() for module in types)


def test_the_core_imports_numpy_only():
    allowed = {*sys.stdlib_module_names, "numpy", "fourrates"}
    rooms = ("bank", "detectors", "evidence")
    core = ["findings", "labels", "null", "record", "state"]
    core += [f"{room}.{path.stem}" for room in rooms for path in (SOURCE / "fourrates" / room).glob("[!_]*.py")]
    assert len(core) > 20
    for name in core:
        path = MODULES[f"fourrates.{name}"]
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [node.module] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                assert module.split(".")[0] in allowed, f"{name} imports {module}"


def test_no_module_is_too_long():
    lengths = {
        path.relative_to(SOURCE).as_posix(): len(path.read_text().splitlines())
        for suffix in ("py", "pyx", "pxd", "pyi")
        for path in SOURCE.rglob(f"*.{suffix}")
    }
    assert {name: size for name, size in lengths.items() if size > LONGEST} == {}


def test_every_room_is_in_the_design():
    text = (SOURCE.parent / "docs" / "design.md").read_text().split("## The rooms")[1].split("\n## ")[0]
    rooms = {f"{path.name}/" for path in (SOURCE / "fourrates").iterdir() if (path / "__init__.py").exists()}
    rooms |= {path.name for path in (SOURCE / "fourrates").glob("*.py") if not path.name.startswith("__")}
    named = set(re.findall(r"`([\w]+(?:/|\.py))`", text))
    assert rooms - named == set()
    assert {name for name in named - rooms if name != "base.py"} == set()


@pytest.mark.parametrize("package", [fourrates, fourrates.io])
def test_names_imported_on_first_use_are_listed_and_there(package):
    assert {*package.__all__} <= {*dir(package)}
    assert [name for name in package.__all__ if getattr(package, name, None) is None] == []


def test_the_files_that_contributors_are_sent_to_are_there():
    text = (SOURCE.parent / "CONTRIBUTING.md").read_text()
    table = text[text.index("## Where to change what") : text.index("## House rules")]
    named = re.findall(r"`((?:\w+/)*\w*\.?\w+/?)`", table)
    assert len(named) > 20
    assert [
        name for name in named if not any((root / name).exists() for root in (SOURCE.parent, SOURCE / "fourrates"))
    ] == []
