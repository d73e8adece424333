"""Spark finds what one bank finds, batch and streaming, and names what cannot be an event."""

import json
import os
import re

import numpy as np
import pytest
from spark_session import QUIET, same_streams, start

import fourrates as fr

pytestmark = QUIET
SIZE, KEYS, ARL = 12_000, 24, 1e5
OF_RATES = "kind not in ('shift', 'rejected', 'unlabelled')"
FOUND = ["kind", "at", "since", "started", "rate", "direction", "before", "after", "evidence"]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    made = start(tmp_path_factory.mktemp("spark"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def engine(session):
    from fourrates.engines import spark

    return spark


@pytest.fixture(scope="module")
def events():
    """Key, moment, truth, pred; every sixth stream goes wrong half-way."""
    random = np.random.default_rng(3)
    key = random.integers(0, KEYS, SIZE)
    truth = random.random(SIZE) < 0.4
    broken = (key % 6 == 0) & (np.arange(SIZE) > SIZE // 2) & truth
    return key, np.arange(SIZE), truth, truth ^ (random.random(SIZE) < np.where(broken, 0.8, 0.1))


def table(events, key=None):
    import pyarrow as pa

    keys, moment, truth, pred = events
    return pa.table(
        {
            "key": keys if key is None else key,
            "time": pa.array(moment * 1_000_000, pa.timestamp("us", tz="UTC")),
            "y": truth.astype(np.int32),
            "p": pred.astype(np.int32),
        }
    )


def frame(session, events):
    return session.createDataFrame(table(events))


def findings(result):
    """The rows of a DataFrame of findings but shifts, as tuples."""
    return sorted(tuple(row) for row in result.where(OF_RATES).select("key", *FOUND).collect())


def expected(keys, truth, pred, detector=None):
    """The findings of one bank but shifts, as tuples."""
    bank = fr.Bank(detector or fr.FourRates(ARL))
    bank.update(keys, truth, pred)
    return bank, sorted(
        (
            *(one.key, one.finding.kind, one.finding.at, getattr(one.finding, "since", None), one.finding.started),
            *(change.rate, change.direction, change.before.value, change.after.value, change.statistic),
        )
        for one in bank.findings
        for change in one.finding.changes
    )


COLUMNS = {"truth": "y", "pred": "p", "by": "key", "order": "time"}


def test_the_findings_are_those_of_one_bank_whatever_the_partitions_with_one_exchange(session, engine, events, capsys):
    bank, wanted = expected(events[0], events[2], events[3])
    assert len(wanted) >= 4
    whole = frame(session, events)
    for given, shards in ((whole.repartition(3), None), (whole.orderBy("p", "y"), 5)):
        assert findings(engine.detect(given, **COLUMNS, arl=ARL, shards=shards)) == wanted
    engine.detect(whole, **COLUMNS, arl=ARL).explain()
    plan = capsys.readouterr().out
    assert len(re.findall(r"\bExchange\b", plan)) == len(re.findall(r"\bSort\b", plan)) == 1
    assert bank.events == SIZE


def there_and_back():
    """Six streams; in two of them the recall falls, and comes back."""
    random = np.random.default_rng(5)
    key, truth = random.integers(0, 6, SIZE), random.random(SIZE) < 0.4
    away = (key % 3 == 0) & truth & (np.arange(SIZE) // (SIZE // 3) == 1)
    return key, np.arange(SIZE), truth, truth ^ (random.random(SIZE) < np.where(away, 0.5, 0.05))


def fields(key, finding, time, started_time, drift):
    moments = [one and np.datetime64(one, "us") for one in (time, started_time)]
    return str(key), finding.at, finding.kind, finding.closes or None, finding.started, *map(str, moments), drift


def as_in_a_frame(found, events):
    """Whether rows have all the fields of the findings of the same events in a frame, times included."""
    wanted = fr.detect(table(events), truth="y", pred="p", by="key", time="time", arl=ARL)
    assert {one.kind for one in wanted} >= {"drift", "confirmation", "recovery"}
    rows = found.where("kind not in ('rejected', 'unlabelled')").collect()
    assert {fields(row.key, row, row.time, row.started_time, row.drift) for row in rows} == {
        fields(one.segment, one, one.time, one.started_time, one.about and one.about.at) for one in wanted
    }


def test_findings_have_the_fields_they_have_on_one_machine(session, engine):
    events = there_and_back()
    as_in_a_frame(engine.detect(frame(session, events), **COLUMNS, arl=ARL), events)


def test_keys_of_several_columns_labels_of_any_kind_and_a_reference(session, engine, events):
    from pyspark.sql import functions as F

    keys, _, truth, pred = events
    words = {
        "y": F.when(F.col("y") == 1, "spam").otherwise("ham"),
        "p": F.when(F.col("p") == 1, "spam").otherwise("ham"),
    }
    given = frame(session, events).withColumns(words | {"shop": F.concat(F.lit("shop "), F.col("key") % 5)})
    reference = session.createDataFrame(
        [("ham", "ham"), ("spam", "spam")] * 90 + [("ham", "spam"), ("spam", "ham")] * 10, "y string, p string"
    )
    found = engine.detect(
        given,
        truth="y",
        pred="p",
        by=["shop", "key"],
        order="time",
        arl=ARL,
        labels=["ham", "spam"],
        reference=reference,
    )
    detector = fr.FourRates(ARL, reference=[[90, 10], [10, 90]])
    wanted = expected(keys, truth, pred, detector)[1]
    rows = found.where(OF_RATES).select("key", *FOUND, "shop").collect()
    assert sorted(tuple(row)[:10] for row in rows) == wanted
    assert all(row["shop"] == f"shop {row['key'] % 5}" for row in rows)
    assert "drift" in {row["kind"] for row in rows}


BAD_ROWS = [
    (None, 1, "1", "0", "the value in column 'key' is missing"),
    (1, 2, "1", None, "the value in column 'p' is missing"),
    (1, 3, "1", "maybe", "'maybe' in column 'p' is not one of the labels 0, 1"),
    (2, None, "1", "1", "the value in column 'time' is missing"),
]


def test_rows_that_are_no_events_are_named_and_the_others_are_watched(session, engine, events):
    keys, _, truth, pred = events
    schema = "key long, time long, y string, p string"
    good = session.createDataFrame(table(events)).selectExpr(
        "key", "unix_micros(time) time", "string(y) y", "string(p) p"
    )
    given = good.union(session.createDataFrame([row[:4] for row in BAD_ROWS], schema))
    given = given.union(session.createDataFrame([(1, 4, None, "1"), (1, 5, None, "maybe")], schema))
    call = {**COLUMNS, "arl": ARL}  # text is read as the numbers that it spells
    found = engine.detect(given, **call)
    assert findings(found) == expected(keys, truth, pred)[1]
    rejected = found.where("kind = 'rejected'").collect()
    assert sorted(row["reason"] for row in rejected) == sorted(row[4] for row in BAD_ROWS)
    assert json.loads(next(row["row"] for row in rejected if "maybe" in row["reason"])) == {
        "key": 1,
        "time": 3,
        "y": "1",
        "p": "maybe",
    }
    unlabelled = found.where("kind = 'unlabelled'").collect()
    assert sum(row["rows"] for row in unlabelled) == 2
    left_out = engine.detect(given, **call, bad="skip")
    assert findings(left_out) == expected(keys, truth, pred)[1]
    assert left_out.where("kind = 'rejected'").count() == 0
    with pytest.raises(Exception, match=r"(is missing|is not one of the labels 0, 1): \{\"key\":"):
        engine.detect(given, **call, bad="reject").collect()


@pytest.mark.parametrize("bad", ["keep", "skip"])
def test_rows_without_a_key_meet_in_one_place_only_if_they_are_kept(session, engine, capsys, bad):
    given = session.createDataFrame([], "key double, time timestamp, y int, p int")
    engine.detect(given, **COLUMNS, arl=ARL, bad=bad).explain()
    before_exchange = capsys.readouterr().out.partition("Exchange")[2]
    assert ("isnotnull(key" in before_exchange and "isnan(key" in before_exchange) == (bad == "skip")


def test_moments_and_zones_that_python_does_not_know_end_no_job(session, engine, events):
    from pyspark.sql import functions as F

    far = 400 * 10**15  # microseconds: the year 14645
    given = frame(session, events).withColumn("time", F.timestamp_micros(F.unix_micros("time") + far))
    given = given.withColumn("y", F.when(F.unix_micros("time") == far, 7).otherwise(F.col("y")))
    session.conf.set("spark.sql.session.timeZone", "GMT+01:00")
    try:
        shown = {name: F.unix_micros(name) - far for name in ("time", "started_time")}
        found = engine.detect(given, **COLUMNS, arl=ARL).withColumns(shown).cache()
        assert findings(found) == expected(events[0][1:], events[2][1:], events[3][1:])[1]
        (rejected,) = found.where("kind = 'rejected'").collect()
        assert json.loads(rejected["row"])["time"] == "14645-06-30T15:06:40.000000"
        keys, at = (
            events[0][1:],
            {(row["key"], row["at"]): row["time"] for row in found.where("kind = 'drift'").collect()},
        )
        assert at == {(key, n): 1_000_000 * (1 + int(np.flatnonzero(keys == key)[n])) for key, n in at}
    finally:
        session.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"truth": "label"}, "truth: there is no column 'label'; there are key, time, y, p, list"),
        ({"truth": "list"}, "truth: column 'list' is array<int>, which cannot be a label: cast it"),
        ({"by": "list"}, "by: column 'list' is array<int>, which cannot be a key: cast it to string"),
        ({"order": None}, "order: a DataFrame has none; name"),
        ({"by": ["key", "key"]}, "column 'key' is named twice"),
        ({"bad": "ignore"}, r"bad 'ignore' is not one of \('reject', 'skip', 'keep'\)"),
        ({"shards": 0}, "shards 0 is not at least 1"),
        ({"watermark": "1 minute"}, "watermark is for a streaming DataFrame"),
        ({"arl": 1e4, "budget": 1e4}, "give one of them"),
        ({"detector": fr.LFR(), "arl": 1e4}, "give arl to the detector"),
    ],
)
def test_what_does_not_fit_is_named_before_anything_runs(session, engine, change, message):
    given = session.createDataFrame([], "key long, time timestamp, y int, p int, list array<int>")
    with pytest.raises(ValueError, match=message):
        engine.detect(given, **{**COLUMNS, **change})


def test_a_budget_in_words_counts_the_events_of_the_data(session, engine, events):
    call = {**COLUMNS, "bad": "skip"}
    found = engine.detect(frame(session, events), **call, budget="1 per day")  # an event a second
    assert findings(found) == expected(events[0], events[2], events[3], fr.FourRates(86_400))[1]


# ------------------------------------------------------------------------------------------- streaming


def source(session, folder):
    reader = session.readStream.schema("key long, time timestamp, y int, p int")
    return reader.option("maxFilesPerTrigger", 1).parquet(str(folder))


def write(folder, events, places, name):
    import pyarrow.parquet as pq

    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.parquet"
    pq.write_table(table([column[places] for column in events]), file)
    second = 1_700_000_000 + ord(name)  # Spark takes the oldest file first
    os.utime(file, (second, second))


def run(session, engine, folder, **more):
    """All there is in `folder/in`, in micro-batches of a file each."""
    found = engine.detect(source(session, folder / "in"), **{**COLUMNS, "arl": ARL, "shards": 3, **more})
    query = found.writeStream.foreachBatch(engine.write_once(str(folder / "out")))
    query = query.option("checkpointLocation", str(folder / "state")).trigger(availableNow=True).start()
    query.awaitTermination()
    return session.read.parquet(str(folder / "out"))


def test_a_stream_that_is_stopped_and_goes_on_ends_with_the_drifts_and_the_state_of_one_bank(
    session, engine, events, tmp_path
):
    bank, wanted = expected(events[0], events[2], events[3])
    write(tmp_path / "in", events, slice(0, 5000), "a")
    assert len(findings(run(session, engine, tmp_path))) < len(wanted)
    write(tmp_path / "in", events, slice(5000, SIZE), "b")
    assert findings(run(session, engine, tmp_path)) == wanted
    assert same_streams(engine.read_bank(session, str(tmp_path / "state")), bank)
    write(tmp_path / "in", events, slice(0, 10), "c")
    with pytest.raises(Exception, match="keys in 3 shards, not in 4: keep shards=3"):
        run(session, engine, tmp_path, shards=4)
    with pytest.raises(Exception, match="has streams by key int64, not by y int32: begin with a new one"):
        run(session, engine, tmp_path, by="y")
    with pytest.raises(Exception, match="the checkpoint is that of FourRates"):
        run(session, engine, tmp_path, arl=2 * ARL)


def test_findings_of_a_stream_have_the_fields_they_have_on_one_machine(session, engine, tmp_path):
    events = there_and_back()
    for name, first, end in (("a", 0, 4100), ("b", 4100, 4200), ("c", 4200, 8100), ("d", 8100, SIZE)):
        write(tmp_path / "in", events, slice(first, end), name)
    as_in_a_frame(run(session, engine, tmp_path), events)


def test_events_within_the_watermark_are_put_in_order_and_later_ones_are_named(session, engine, events, tmp_path):
    random = np.random.default_rng(5)
    late = np.argsort(np.arange(SIZE) + random.uniform(0, 300, SIZE), kind="stable")  # by at most 300 seconds
    for i, part in enumerate(np.array_split(late, 3)):
        write(tmp_path / "in", events, part, f"{i}")
    end = [np.array([column]) for column in (0, SIZE + 10_000, 1, 1)]  # carries the watermark over all events
    write(tmp_path / "in", end, slice(None), "3")
    write(tmp_path / "in", [np.array([column]) for column in (7, 5, 1, 1)], slice(None), "4")
    found = run(session, engine, tmp_path, watermark="400 seconds")
    bank, wanted = expected(events[0], events[2], events[3])
    assert findings(found) == wanted
    rejected, *more = found.where("kind = 'rejected'").collect()
    assert not more
    assert rejected["reason"].startswith("late: 1970-01-01T00:00:05+00:00 in 'time' is ")
    assert json.loads(rejected["row"]) == {"key": 7, "time": "1970-01-01T00:00:05+00:00", "y": 1, "p": 1}
    assert same_streams(engine.read_bank(session, str(tmp_path / "state")), bank)


def test_rows_of_a_stream_that_are_no_events_are_named_and_the_query_lives(session, engine, events, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    write(tmp_path / "in", events, slice(0, 6000), "a")
    bad = [(None, 1, 1, 0), (1, 2, None, 0), (1, 3, 1, 7), (2, None, 1, 1)]
    kinds = {"key": pa.int64(), "time": pa.timestamp("us", tz="UTC"), "y": pa.int32(), "p": pa.int32()}
    columns = [pa.array(column, kind) for column, kind in zip(zip(*bad, strict=True), kinds.values(), strict=True)]
    pq.write_table(pa.table(columns, [*kinds]), tmp_path / "in" / "b.parquet")
    os.utime(tmp_path / "in" / "b.parquet", (1_700_000_000 + ord("b"),) * 2)
    write(tmp_path / "in", events, slice(6000, SIZE), "c")
    found = run(session, engine, tmp_path)
    bank, wanted = expected(events[0], events[2], events[3])
    assert findings(found) == wanted
    assert sorted(row["reason"] for row in found.where("kind = 'rejected'").collect()) == [
        "7 in column 'p' is not one of the labels 0, 1",
        "the value in column 'key' is missing",
        "the value in column 'time' is missing",
    ]
    assert [row["rows"] for row in found.where("kind = 'unlabelled'").collect()] == [1]
    assert same_streams(engine.read_bank(session, str(tmp_path / "state")), bank)


def test_a_micro_batch_that_is_repeated_replaces_what_it_wrote(session, engine, tmp_path):
    session.sparkContext.setLocalProperty("sql.streaming.queryId", "q")
    write_batch = engine.write_once(str(tmp_path / "out"))
    for value, batch in ((1, 0), (2, 1), (3, 1)):
        write_batch(session.createDataFrame([(value,)], "value int"), batch)
    assert sorted(row["value"] for row in session.read.parquet(str(tmp_path / "out")).collect()) == [1, 3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": "y", "watermark": "1 minute"}, "watermark: give order= a column of timestamps"),
        ({"watermark": True}, "watermark: column 'time' has none"),
        ({"by": "share"}, "by: column 'share' is double, which cannot be a key: cast it to string"),
        ({"order": ["time", "y"]}, "order: a stream is put in order by one column"),
        ({"budget": "1 per month"}, "needs a column of times"),
    ],
)
def test_what_does_not_fit_a_stream_is_named_before_anything_runs(session, engine, tmp_path, change, message):
    given = session.readStream.schema("key long, share double, time timestamp, y int, p int").parquet(str(tmp_path))
    with pytest.raises(ValueError, match=message):
        engine.detect(given, **{**COLUMNS, **change})
