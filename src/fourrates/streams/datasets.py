"""The paper's public data sets, and one more: found, verified, and read; never shipped.

A file is looked for in the folder given, in the one named by FOURRATES_DATA, and in the cache; it must have the SHA-256
it had when the paper's numbers were checked. What is nowhere is fetched with pooch (extra ``data``) where its public
home has an address for the file itself, and otherwise the error says what to put where.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fourrates import cache
from fourrates.streams.examples import Examples

if TYPE_CHECKING:
    import numpy.typing as npt

DRIFT_SETS = "https://www.win.tue.nl/~mpechen/data/DriftSets/"
USENET = "http://mlkd.csd.auth.gr/concept_drift.html"


class DatasetError(OSError):
    """A data set that is not there, or not the one it should be."""


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
        The page it comes from.
    direct : bool
        Whether a file's address is the home's with its name behind it.
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
        Whether to download what is nowhere.
    """
    dataset = _dataset(name)
    return [_file(name, dataset, file, digest, folder, fetch) for file, digest in dataset.files.items()]


def load(name: str, folder: str | os.PathLike[str] | None = None) -> Examples:
    """Read a data set, from a folder or downloaded, verified by its hash.

    Parameters
    ----------
    name : str
        One of :data:`DATASETS`.
    folder : path, optional
        Where to look first.
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


def _file(
    name: str, dataset: Dataset, file: str, digest: str, folder: str | os.PathLike[str] | None, fetch: bool
) -> Path:
    own = Path(cache.folder()) / "data"
    places = [Path(place) for place in (folder, os.environ.get("FOURRATES_DATA")) if place] + [own]
    for place in places:
        path = place / file
        if path.is_file():
            found = hashlib.sha256(path.read_bytes()).hexdigest()
            if found != digest:
                raise DatasetError(f"{path} is not the {file} of {name}: its SHA-256 is {found}, not {digest}")
            return path
    where = f"put {file} from {dataset.home} into {places[0]}"
    if not (fetch and dataset.direct):
        raise DatasetError(f"{name}: {file} is not there; {where}")
    try:
        import pooch
    except ImportError:
        raise DatasetError(f"{name}: {file} is not there; install fourrates[data] to fetch it, or {where}") from None
    try:
        return Path(pooch.retrieve(dataset.home + file, f"sha256:{digest}", fname=file, path=own))
    except Exception as error:  # of requests, of the network, of the disk: all end the same way
        raise DatasetError(f"{name}: {file} could not be fetched ({error}); {where}") from error


def _arff(path: Path) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], tuple[str, ...]]:
    """Features, labels and classes of a file whose last attribute is the class and whose others are numbers."""
    with path.open(encoding="utf-8") as lines:
        declared = ""
        for line in lines:
            if line.lower().startswith("@attribute"):
                declared = line
            if line.lower().startswith("@data"):
                break
        classes = tuple(one.strip() for one in declared[declared.index("{") + 1 : declared.index("}")].split(","))
        codes: dict[str, Any] = {one: code for code, one in enumerate(classes)}
        table = np.loadtxt(
            lines, delimiter=",", ndmin=2, converters={-1: lambda text: codes[text.strip()]}, encoding="utf-8"
        )
    return table[:, :-1], table[:, -1].astype(np.int64), classes
