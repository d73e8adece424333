"""Who may do what: tokens, scopes, and pages of other sites where no token is needed."""

import asyncio
import functools
import json
import os
import stat
import tempfile
import time
from pathlib import Path

import httpx
import pytest

pytest.importorskip("starlette")
from starlette.responses import PlainTextResponse

from fourrates.cli.app import run
from fourrates.serve import tokens as tokens_module
from fourrates.serve.access import Access
from fourrates.serve.app import Service
from fourrates.serve.errors import ApiError
from fourrates.serve.front import Call, Front
from fourrates.serve.metrics import Metrics
from fourrates.serve.settings import Settings
from fourrates.serve.tokens import SCOPES, Tokens


async def done(request):
    return PlainTextResponse("done")


@functools.cache
def calls():
    """The calls of a server, each answered at once."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Settings(data=Path(folder)))
        service.store.close()
        return [Call(call.method, call.path, done, scope=call.scope) for call in service.calls]


def client(tokens, **options):
    app = Front(calls(), Access(tokens, **options), Metrics(lambda: None, dict))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8421")


async def asked(tokens, method, path, headers=None, **options):
    async with client(tokens, **options) as http:
        return await http.request(method, path, headers=headers or {})


def ask(*args, **options):
    return asyncio.run(asked(*args, **options))


def bearer(text):
    return {"Authorization": f"Bearer {text}"}


@pytest.fixture
def tokens(tmp_path):
    return Tokens(tmp_path)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/", "nobody ingest read admin"),
        ("GET", "/healthz", "nobody ingest read admin"),
        ("GET", "/static/page.js", "nobody ingest read admin"),
        ("POST", "/", "admin"),
        ("GET", "/api/monitors", "read admin"),
        ("GET", "/api/monitors/fraud", "read admin"),
        ("GET", "/api/monitors/fraud/drifts", "read admin"),
        ("GET", "/api/stream", "read admin"),
        ("GET", "/metrics", "read admin"),
        ("GET", "/nowhere", "read admin"),
        ("POST", "/api/monitors/fraud/events", "ingest admin"),
        ("POST", "/api/monitors/fraud/predictions", "ingest admin"),
        ("POST", "/api/monitors/fraud/labels", "ingest admin"),
        ("POST", "/api/monitors/fraud/labels/more", "admin"),
        ("PUT", "/api/monitors/fraud/events", "admin"),
        ("PUT", "/api/monitors/fraud", "admin"),
        ("PATCH", "/api/monitors/fraud", "admin"),
        ("DELETE", "/api/monitors/fraud", "admin"),
        ("PUT", "/api/monitors/fraud/silence", "admin"),
        ("POST", "/api/monitors/fraud/drifts/7/acknowledge", "admin"),
        ("POST", "/api/monitors/fraud/test-alert", "admin"),
    ],
)
def test_every_request_needs_its_scope(tokens, method, path, allowed):
    no_call = {("GET", "/nowhere"): 404, ("POST", "/api/monitors/fraud/labels/more"): 404}
    wanted = (no_call | {("POST", "/"): 405, ("PUT", "/api/monitors/fraud/events"): 405}).get((method, path), 200)
    texts = {scope: tokens.create(scope, [scope])[0] for scope in ("ingest", "read", "admin")}
    for scope, text in texts.items():
        answer = ask(tokens, method, path, bearer(text))
        is_refused = answer.status_code == 403 and answer.json()["error"]["code"] == "forbidden"
        assert is_refused == (scope not in allowed.split()), scope
        if not is_refused:
            assert answer.status_code == wanted, scope
    answer = ask(tokens, method, path)
    assert answer.status_code == (200 if "nobody" in allowed else 401)


def test_a_wrong_revoked_expired_or_malformed_token_is_no_token(tokens):
    good, _ = tokens.create("good", ["read"])
    revoked, token = tokens.create("gone", ["admin"])
    tokens.revoke(token.id)
    expired, _ = tokens.create("old", ["admin"], expires=time.time() - 1)
    other, _ = tokens.create("other", ["read"])
    mixed = f"{good[:16]}{other[16:]}"  # the id of one, the secret of another
    wrong = [revoked, expired, mixed, good[:-1], good + "x", "", "x", "frt__", "../" * 20, "é" * 20, "a" * 100_000]
    for text in wrong:
        answer = ask(tokens, "GET", "/api/monitors", {"Authorization": f"Bearer {text}".encode()})
        assert answer.status_code == 401, text[:60]
        assert answer.headers["www-authenticate"] == "Bearer"
    assert ask(tokens, "GET", "/api/monitors", {"Authorization": f"Basic {good}"}).status_code == 401
    assert ask(tokens, "GET", f"/api/monitors?token={good}").status_code == 401, "an address is no place for a secret"
    assert ask(tokens, "GET", "/api/monitors", bearer(good)).status_code == 200


def test_a_token_for_one_monitor_reaches_no_other(tokens):
    text, _ = tokens.create("card service", ["ingest", "read"], ["fraud"])
    status = {
        path: ask(tokens, method, path, bearer(text)).status_code
        for method, path in [
            ("POST", "/api/monitors/fraud/events"),
            ("GET", "/api/monitors/fraud/drifts"),
            ("GET", "/api/stream?monitor=fraud"),
            ("POST", "/api/monitors/churn/events"),
            ("GET", "/api/monitors"),
            ("GET", "/metrics"),
            ("GET", "/api/stream"),
            ("GET", "/api/stream?monitor=churn"),
            ("GET", "/api/stream?monitor=fraud&monitor=churn"),
        ]
    }
    assert [path for path, code in status.items() if code == 200] == list(status)[:3]
    assert set(list(status.values())[3:]) == {403}


def test_secrets_are_not_on_the_disk_and_files_are_for_their_owner(tokens, tmp_path):
    text, token = tokens.create("a", ["read"])
    (path,) = tmp_path.rglob("*.json")
    assert text.rpartition("_")[2] not in path.read_text()
    assert token.digest in path.read_text()
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_what_root_makes_belongs_to_who_runs_the_server(tokens, tmp_path):
    os.chown(tmp_path, 65534, 65534)
    tokens.create("a", ["read"])
    assert {path.stat().st_uid for path in tmp_path.rglob("*")} == {65534}


def test_a_token_is_refused_within_a_second_after_another_process_revoked_it(tokens, tmp_path, monkeypatch):
    text, token = tokens.create("a", ["read"])
    assert tokens.check(text) == token
    Tokens(tmp_path).revoke(token.id)  # as the command line does
    monkeypatch.setattr(tokens_module, "FRESH", 0.0)
    assert tokens.check(text) is None


@pytest.mark.parametrize("content", [b"", b"{}", b"[" * 50_000, b"\xff", b'{"id": "x"}', b"a" * 1_000_000])
def test_a_damaged_file_is_no_token(tokens, content):
    text, token = tokens.create("a", ["read"])
    tokens.revoke(token.id)
    (tokens.folder / f"{token.id}.json").write_bytes(content)
    assert tokens.check(text) is None
    assert tokens.all() == []


def test_on_the_loopback_no_token_is_needed_but_the_host_must_be_this_machine(tokens):
    for host in ("127.0.0.1", "127.0.0.1:9000", "localhost:8421", "[::1]:8421", "model.localhost"):
        answer = ask(tokens, "GET", "/api/monitors", {"Host": host}, required=False)
        assert answer.status_code == 200, host
    for host in ("evil.example", "evil.example:8421", "127.0.0.1.evil.example", "localhost.evil.example", "[::"):
        answer = ask(tokens, "GET", "/api/monitors", {"Host": host}, required=False)
        assert (answer.status_code, answer.json()["error"]["code"]) == (421, "foreign_host"), host


def test_without_tokens_a_page_of_another_site_may_not_call(tokens):
    for origin, status in [
        ("http://127.0.0.1:8421", 200),
        ("https://board.example", 200),
        ("https://evil.example", 403),
        ("http://127.0.0.1:3000", 403),
        ("null", 403),
        ("http://[", 403),
    ]:
        answer = ask(
            tokens,
            "POST",
            "/api/monitors/m/events",
            {"Origin": origin},
            required=False,
            origins=["https://board.example"],
        )
        assert answer.status_code == status, origin


def test_without_tokens_nothing_that_a_proxy_forwards_is_served(tokens):
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
        answer = ask(tokens, "GET", "/api/monitors", {name: "203.0.113.7"}, required=False)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forwarded")
    text, _ = tokens.create("a", ["read"])
    assert ask(tokens, "GET", "/api/monitors", {**bearer(text), "X-Forwarded-For": "203.0.113.7"}).status_code == 200


def test_the_command_line_makes_lists_and_revokes_tokens(tmp_path, capsys):
    def words(*given):
        status = run(["token", *given, "--data", str(tmp_path)])
        told = capsys.readouterr()
        return status, told.out, told.err

    status, text, said = words("create", "card\x1b[31m service", "--scope", "ingest", "--monitor", "fraud")
    assert status == 0
    assert "not shown again" in said
    token = Tokens(tmp_path).check(text.strip())
    assert (token.scopes, token.monitors, token.expires) == (("ingest",), ("fraud",), None)
    _, other, _ = words("create", "board", "--scope", "read", "--days", "1")
    assert 86_000 < Tokens(tmp_path).check(other.strip()).expires - time.time() <= 86_400
    status, table, _ = words("list")
    assert token.id in table
    assert "\x1b" not in table
    assert text.strip() not in table
    status, out, _ = words("list", "--json")
    assert [one["name"] for one in json.loads(out)["tokens"]] == ["card\x1b[31m service", "board"]
    assert "digest" not in out
    assert words("revoke", token.id)[0] == 0
    assert Tokens(tmp_path).check(text.strip()) is None
    status, _, said = words("revoke", token.id)
    assert status == 2
    assert "there is no token" in said
    status, _, said = words("create", "x", "--scope", "admin", "--monitor", "fraud")
    assert status == 2
    assert "admin is for all monitors" in said


class TestEveryEndpointOfAServer:
    """Without a token, with a wrong one, with one that is too narrow, and with the right one."""

    @pytest.fixture
    def served(self, start):
        return start(token_required=True)

    def routes(self, served):
        for call in served.app.calls:
            path = call.path.replace("{name}", "fraud").replace("{id}", "x")
            for method in ["GET", "HEAD"] if call.method == "GET" else [call.method]:
                yield method, path, call.scope

    @pytest.mark.slow
    def test_answers_only_who_may_ask(self, served):
        tokens = Tokens(served.data)
        held = {scope: tokens.create(scope, [scope])[0] for scope in SCOPES}
        narrow, _ = tokens.create("other", ["ingest", "read"], ["churn"])
        checked = 0
        for method, path, scope in self.routes(served):
            if path == "/api/stream":  # an answer without an end
                continue
            checked += 1
            for credentials, status in [
                ({}, 401),
                (bearer("frt_" + "0" * 12 + "_" + "A" * 43), 401),
                (bearer(narrow), 403),
            ]:
                answer = served.http.request(method, path, headers=credentials)
                if scope == "open":
                    assert answer.status_code == 200, path
                else:
                    assert answer.status_code == status, (method, path)
                    if method != "HEAD":  # which has no body
                        assert answer.json()["error"]["code"] == {401: "unauthorized", 403: "forbidden"}[status]
            for other, text in held.items():
                answer = served.http.request(method, path, headers=bearer(text))
                allowed = scope == "open" or other in (scope, "admin")
                assert (answer.status_code != 403) == allowed, (method, path, other)
                assert answer.status_code not in (401, 500), (method, path, other)
        assert checked > 25

    def test_the_stream_needs_a_token_too(self, served):
        for credentials, status in [
            ({}, 401),
            (bearer("x"), 401),
            (bearer(Tokens(served.data).create("i", ["ingest"])[0]), 403),
        ]:
            assert served.http.get("/api/stream", headers=credentials).status_code == status

    @pytest.mark.slow
    @pytest.mark.parametrize("ending", ["revoked", "expired"])
    def test_a_stream_ends_within_seconds_after_its_token_does(self, served, ending):
        tokens = Tokens(served.data)
        expires = time.time() + 1.5 if ending == "expired" else None
        text, token = tokens.create("board", ["read"], expires=expires)
        admin = bearer(tokens.create("person", ["admin"])[0])
        with (
            served.http.stream("GET", "/api/stream", headers=admin) as other,
            served.http.stream("GET", "/api/stream", headers=bearer(text)) as stream,
        ):
            lines = stream.iter_lines()
            assert next(lines) == ": connected"
            if ending == "revoked":
                assert Tokens(served.data).revoke(token.id)  # as the command line does, in a process of its own
            began = time.monotonic()
            assert not [line for line in lines if line.startswith("event")]  # to its end
            assert (
                time.monotonic() - began < 10
            )  # two seconds between looks, one for which a token is believed, and load
            assert served.http.put("/api/monitors/fraud", json={}, headers=admin).status_code == 201
            assert next(line for line in other.iter_lines() if line.startswith("event")) == "event: changed"
        assert served.http.get("/api/stream", headers=bearer(text)).status_code == 401

    def test_a_refused_request_changes_nothing(self, served):
        tokens = Tokens(served.data)
        admin, read = (bearer(tokens.create(scope, [scope])[0]) for scope in ("admin", "read"))
        assert served.http.put("/api/monitors/fraud", json={}, headers=admin).status_code == 201
        body = {"y_true": [1], "y_pred": [1]}
        assert served.http.post("/api/monitors/fraud/events", json=body, headers=read).status_code == 403
        assert served.http.delete("/api/monitors/fraud", headers=read).status_code == 403
        assert served.http.get("/api/monitors/fraud", headers=read).json()["events"] == 0


def test_a_server_on_another_address_asks_for_tokens_and_one_on_the_loopback_does_not(tmp_path):
    for host, asks in [("0.0.0.0", True), ("::", True), ("192.0.2.1", True), ("127.0.0.1", False), ("::1", False)]:
        assert Settings(data=tmp_path, host=host).needs_token == asks


def test_other_origins_are_answered_only_where_they_are_named(start):
    served = start(origins=("https://board.example",), token_required=True)
    preflight = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
    for origin, allowed in [("https://board.example", True), ("https://evil.example", False)]:
        answer = served.http.options("/api/monitors", headers={"Origin": origin, **preflight})
        assert (answer.headers.get("access-control-allow-origin") == origin) == allowed
    assert "access-control-allow-origin" not in served.http.get("/healthz").headers


def test_a_token_that_cannot_be_read_now_is_not_called_unknown(tokens):
    import resource

    text, _ = tokens.create("t", ["read"])
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def out_of_descriptors():
        async with client(tokens) as http:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
            try:
                return await http.get("/api/monitors", headers=bearer(text))
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    answer = asyncio.run(out_of_descriptors())
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    assert answer.headers["Retry-After"] == "1"
    assert ask(tokens, "GET", "/api/monitors", bearer(text)).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("host", "127.0.0.1:8421"), ("host", "127.0.0.1:8421")],
        [("host", "evil.example"), ("host", "127.0.0.1:8421")],
        [("host", "127.0.0.1:8421"), ("origin", "https://evil.example"), ("origin", "http://127.0.0.1:8421")],
    ],
)
def test_a_host_that_is_missing_or_headers_that_come_twice_are_refused(tokens, headers):
    raw = [(name.encode(), value.encode()) for name, value in headers]
    scope = {"type": "http", "method": "GET", "path": "/api/monitors", "headers": raw}
    with pytest.raises(ApiError, match="one Host header"):
        Access(tokens, required=False).check(scope, "read", None)
