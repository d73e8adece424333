"""The paper's public data sets, and one more, found and verified but never shipped.

A file is looked for in the given folder, the one named by FOURRATES_DATA, and the cache. Its SHA-256 must be that of
the files the paper's numbers were checked with. A missing file is fetched into the cache from its public home with
pooch (extra ``paper``); if that fails the error says which file to put where.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import numpy as np
import numpy.typing as npt

from fourrates import cache
from paper.examples import Examples

DRIFT_SETS = "https://www.win.tue.nl/~mpechen/data/DriftSets/"
USENET = "http://mlkd.csd.auth.gr/concept_drift.html"


class DatasetError(OSError):
    """A data set that is missing or damaged."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A public data set.

    Attributes
    ----------
    files : dict
        Names and SHA-256 of its files, in the order of the stream.
    changes : tuple of int
        The first example of each new concept.
    home : str
        The page it is from.
    direct : bool
        Whether a file's address is the home's followed by its name. If not, the home has a link to it.
    """

    files: dict[str, str]
    changes: tuple[int, ...]
    home: str
    direct: bool = False


DATASETS = {
    "usenet1": Dataset(
        {"usenet1.arff": "103b2ecb08b7251e39f82e1cac9f9e0c9d2691bd45a6ffd5e797e3d64da7d99d"},
        (300, 600, 900, 1200),
        USENET,
    ),
    "usenet2": Dataset(
        {"usenet2.arff": "af81185cd58425efd60f0a45e0c03ac74ab6643a5042e590f67ca6e5b5ad2b9b"},
        (300, 600, 900, 1200),
        USENET,
    ),
    "sea": Dataset(
        {"sea.arff": "3473ee4c331d58a5fe5e179a61893c57997c1df525a7c8f6e7cfd765fce72486"},
        (15_000, 30_000, 45_000),
        DRIFT_SETS,
        direct=True,
    ),
    "hyperplane": Dataset(
        {
            "hyperplane1.arff": "3e68c6e18f59de49f5402cbadb9465d048fedde07fa03821b2618cffefa82148",
            "hyperplane2.arff": "1baa99ba8660a3519274a9c3ca6144f2a92af445767eba61e6d9a3041aab2f39",
            "hyperplane3.arff": "a854a44d9ce326f3daf028d37a71c74bbde3b66006ac0c8a0ac2314aea14a0ca",
            "hyperplane4.arff": "8465e3cf90f6881d03b61338efa26c2d7a35d4659c9a946224a219b13dfcb2f2",
            "hyperplane5.arff": "dee70bb2a27431e6258332d6b0020fc6aa494e451753e09396c6e4adf921abbc",
            "hyperplane6.arff": "5912e4299f3f79962a0950f303d5f411d0ce4920d18eee888027bd7130bf4e69",
            "hyperplane7.arff": "37d8597e19b2ecbb8aaa4dbe8332753e43b95d3abff98fe923a2b7147e42f65d",
            "hyperplane8.arff": "6ad88fdc10115623cf379e68b1e6d2ff635996c3a88992b5ace76e6b9d51e4aa",
            "hyperplane9.arff": "f201bb60541ea3006039ca390a3864135f5134327859ed8109696970fa7ce6a1",
        },
        tuple(range(10_000, 90_000, 10_000)),
        DRIFT_SETS,
        direct=True,
    ),
    "elecNorm": Dataset(
        {"elecNorm.arff": "2d86fbc74c69a5c04bcde0119bce280dd6d8efa0115987edc75b77ccf024d7f2"},
        (),
        "https://moa.cms.waikato.ac.nz/datasets/",
    ),
}
"""By name; the changes of elecNorm are not known."""


def paths(name: str, folder: str | os.PathLike[str] | None = None, *, fetch: bool = True) -> list[Path]:
    """The verified files of a data set.

    Parameters
    ----------
    name : str
        One of :data:`DATASETS`.
    folder : path, optional
        Where to look first.
    fetch : bool
        Whether to download a missing file.

    Raises
    ------
    DatasetError
        If a file is damaged, or missing and cannot be downloaded.
    """
    dataset = _dataset(name)
    places = [Path(place) for place in (folder, os.environ.get("FOURRATES_DATA")) if place]
    own = Path(cache.folder()) / "data"
    found = {file: _found(name, file, digest, [*places, own]) for file, digest in dataset.files.items()}
    missing = [file for file, path in found.items() if path is None]
    if missing:
        files = ", ".join(missing)
        elsewhere = "" if places else ", or into a folder named by FOURRATES_DATA"
        where = f"put {files} from {dataset.home} into {(places or [own])[0]}{elsewhere}"
        if not fetch:
            raise DatasetError(f"{name}: {files} is not there; {where}")
        try:
            found |= {file: _fetched(dataset, file, own) for file in missing}
        except ImportError:
            wanted = "install fourrates[paper] to fetch it"
            raise DatasetError(f"{name}: {files} is not there; {wanted}, or {where}") from None
        except Exception as error:  # of requests, the network or the disk, all with the same remedy
            raise DatasetError(f"{name}: {files} is not there and could not be fetched ({error}); {where}") from error
    return [path for path in found.values() if path is not None]


def load(name: str, folder: str | os.PathLike[str] | None = None) -> Examples:
    """Read a data set, from a folder or downloaded, verified by its hash.

    Parameters
    ----------
    name : str
        One of :data:`DATASETS`.
    folder : path, optional
        Where to look first; then in the folder named by FOURRATES_DATA, then in the cache.

    Raises
    ------
    DatasetError
        If a file is damaged, or missing and cannot be downloaded.
    """
    tables = [_arff(path) for path in paths(name, folder)]
    classes = tables[0][2]
    return Examples(
        np.concatenate([features for features, _, _ in tables]),
        np.concatenate([labels for _, labels, _ in tables]),
        classes,
        _dataset(name).changes,
    )


def _dataset(name: str) -> Dataset:
    if name not in DATASETS:
        raise ValueError(f"data set {name!r} is not one of {tuple(DATASETS)}")
    return DATASETS[name]


def _found(name: str, file: str, digest: str, places: list[Path]) -> Path | None:
    """The first of these places that has the file; an error if that one is damaged."""
    for path in (place / file for place in places):
        if path.is_file():
            found = hashlib.sha256(path.read_bytes()).hexdigest()
            if found != digest:
                raise DatasetError(f"{path} is not the {file} of {name}: its SHA-256 is {found}, not {digest}")
            return path
    return None


def _fetched(dataset: Dataset, file: str, into: Path) -> Path:
    import pooch

    address = dataset.home + file if dataset.direct else _link(dataset.home, file)
    return Path(pooch.retrieve(address, f"sha256:{dataset.files[file]}", fname=file, path=into))


def _link(home: str, file: str) -> str:
    """The address that a page links to for a file."""
    from urllib.request import urlopen  # imports all of http, too heavy for users who have the files

    with urlopen(home, timeout=30) as page:
        text = str(page.read(), "utf-8", "replace")
    targets: list[str] = re.findall(r"""href\s*=\s*["']?([^"'\s>]+)""", text, re.IGNORECASE)
    for target in targets:
        if target.lower().endswith(file.lower()):
            return urljoin(home, target)
    raise LookupError(f"{home} has no link to {file}")


def _arff(path: Path) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], tuple[str, ...]]:
    """Features, labels and classes of a file whose last attribute is the class and whose others are numbers."""
    with path.open(encoding="utf-8") as lines:
        declared = ""
        for line in lines:
            if line.lower().startswith("@attribute"):
                declared = line
            if line.lower().startswith("@data"):
                break
        classes = tuple(name.strip() for name in declared[declared.index("{") + 1 : declared.index("}")].split(","))
        codes: dict[str, Any] = {name: code for code, name in enumerate(classes)}
        table = np.loadtxt(
            lines, delimiter=",", ndmin=2, converters={-1: lambda text: codes[text.strip()]}, encoding="utf-8"
        )
    return table[:, :-1], table[:, -1].astype(np.int64), classes
