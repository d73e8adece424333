"""The client and the real server agree on what was acknowledged."""

import fourrates as fr
from fourrates.disk_queue import DEAD, DiskQueue


def test_counts_of_pairs_predictions_labels_repeats_and_rejected_rows_add_up(start, tmp_path):
    server = start()
    assert server.http.put("/api/monitors/fraud", json={"labels": [0, 1]}).status_code < 300
    with fr.Client(server.url, folder=tmp_path / "batches") as client:
        client.log("fraud", y_true=[0, 1, 7, 1], y_pred=[0, 1, 1, 0])
        assert client.flush()
        assert (client.sent, client.repeated, client.rejected) == (3, 0, 1)
        for _ in range(2):
            client.log("fraud", id=["a", "b", "c"], y_pred=[1, 0, 1])
            client.log("fraud", id=["a", "b", "unknown"], y_true=[1, 0, 1])
            assert client.flush()
    assert client.sent + client.repeated + client.rejected == 4 + 12
    assert client.repeated >= 5
    assert (client.waiting, client.refused, client.dropped) == (0, 0, 0)
    assert server.http.get("/api/monitors/fraud").json()["events"] == 3 + 2


def test_a_batch_beyond_what_the_server_reads_is_divided(start, tmp_path):
    server = start(max_rows=100)
    server.http.put("/api/monitors/fraud", json={"labels": [0, 1]})
    with fr.Client(server.url, folder=tmp_path / "batches") as client:
        client.log("fraud", y_true=[1, 0] * 300, y_pred=[1, 1] * 300)
        assert client.flush(20)
    assert (client.sent, client.refused) == (600, 0)
    assert server.http.get("/api/monitors/fraud").json()["events"] == 600


def test_a_monitor_that_is_not_there_refuses_and_the_batch_is_kept(start, tmp_path, caplog):
    server = start()
    with fr.Client(server.url, folder=tmp_path / "batches") as client:
        client.log("nowhere", y_true=[1, 0], y_pred=[1, 1])
        assert client.flush()
    (kept,) = DiskQueue(tmp_path / "batches" / "batches.queue").entries(DEAD)
    assert b'"y_true": [1, 0]' in kept.body
    assert "there is no monitor 'nowhere'" in caplog.text
    assert (client.refused, client.waiting) == (2, 0)
