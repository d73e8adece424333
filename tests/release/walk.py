"""A new user's walk through pages: every command and snippet on them, in this environment, on files as people have.

python tests/release/walk.py README.md docs/monday.md

Labels are words; one file has a byte order mark, semicolons and CRLF, one is compressed, in one the labels come later
and elsewhere, one holds three models. Commands of the shell run by a shell; `watch` is ended by SIGTERM and started
again; alerts are posted to a server on the loopback. Ends with status 1 at the first thing that does not work.
"""

import contextlib
import doctest
import gzip
import http.server
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np

from fourrates.streams import SCENARIOS, fraud

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WORDS = np.array(["ok", "fraud"])
BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]
INSTALLING = ("make ", "pip install")  # what this environment was made by


def tell(text):
    print(text, flush=True)


# Files ------------------------------------------------------------------------------------------------------


def table(head, *columns, separator=",", end="\n"):
    rows = zip(*columns, strict=True)
    return separator.join(head) + end + "".join(separator.join(map(str, row)) + end for row in rows)


def make_files():
    stream = fraud(seed=1, length=60_000, days=3)
    times, truth, pred = np.datetime_as_string(stream.times), WORDS[stream.y_true], WORDS[stream.y_pred]
    names = ("time", "actual_label", "predicted_label")
    countries = np.array(["de", "fr"])[np.arange(truth.size) % 2]
    payments = table((*names, "country"), times, truth, pred, countries)
    for name in ("payments.csv", "predictions.csv"):
        Path(name).write_text(payments)
    Path("payments.csv.gz").write_bytes(gzip.compress(payments.encode()))
    excel = table(names, times, truth, pred, separator=";", end="\r\n")
    Path("from-excel.csv").write_bytes(b"\xef\xbb\xbf" + excel.encode())
    sound = fraud(seed=2, length=20_000, days=1)
    half = slice(0, 10_000)  # before its change
    Path("validation.csv").write_text(table(names[1:], WORDS[sound.y_true[half]], WORDS[sound.y_pred[half]]))
    ids = [f"t{i}" for i in range(truth.size)]
    Path("predicted.csv").write_text(table(("transaction", "time", "y_hat"), ids, times, pred))
    order = np.random.default_rng(3).permutation(truth.size)[: truth.size - 500]  # out of order, some never
    late = [ids[i] for i in order], truth[order]
    Path("chargebacks.csv").write_text(table(("transaction", "label"), *late))
    models = np.array(["cards", "loans", "mails"])[np.arange(truth.size) % 3]
    Path("three-models.csv").write_text(table(("model", *names), models, times, truth, pred))
    Path("predictions").mkdir()
    for day in range(3):
        part = slice(day * 20_000, (day + 1) * 20_000)
        Path(f"predictions/day-{day}.csv").write_text(table(names, times[part], truth[part], pred[part]))
    Path("log.csv").write_text(table(("y_true", "y_pred"), stream.y_true, stream.y_pred))


# Commands ---------------------------------------------------------------------------------------------------


class Posted(http.server.BaseHTTPRequestHandler):
    """Takes alerts."""

    taken = 0

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        Posted.taken += 1
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def receiver():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Posted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook"
    finally:
        server.shutdown()
        server.server_close()


def environment():
    return {**os.environ, "PATH": f"{Path.cwd() / 'stand-ins'}:{BIN}:{os.environ['PATH']}", "NO_COLOR": "1"}


def shell(line, allowed=(0,)):
    tell(f"  $ {line}")
    done = subprocess.run(["sh", "-c", line], env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode in allowed, f"{line}\nstatus {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def watch(line):
    """Run a watch until it has taken in its file, end it as a service is ended, and start it again."""
    state = Path(re.search(r"--state (\S+)", line)[1])
    posted = Posted.taken
    for again in (False, True):
        tell(f"  $ {line}")
        process = subprocess.Popen(shlex.split(line), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        end = time.monotonic() + 60
        while not again and (Posted.taken == posted or not state.exists()):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end, f"no alert arrived from: {line}"
            time.sleep(0.1)
        time.sleep(1.5)  # longer than the state takes to be saved
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, f"{line}\n{out!r}\n{err!r}"
    assert b"0 events in" in err, f"the second run read again what the first had read: {err!r}"


def serve(line):
    """Start the service, wait until it answers, and end it."""
    tell(f"  $ {line}")
    with subprocess.Popen(
        shlex.split(line, comments=True),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        address = re.search(r"http://\S+", process.stdout.readline())
        try:
            assert address, f"no address from: {line}"
            urllib.request.urlopen(f"{address[0]}/readyz", timeout=30).close()
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == -signal.SIGTERM, line  # it ends in order, and then as one that was asked to


def command(line, hook):
    program, *words = shlex.split(line, comments=True)
    if line.startswith(INSTALLING):
        tell(f"  ({program}: this environment was made by it)")
    elif words[:1] == ["serve"]:
        serve(line)
    elif words[:1] == ["watch"]:
        line = re.sub(r"https://\S+", hook, line.partition("#")[0])
        watch(line if "--state" in line else f"{line} --state {hash(line)}.state")
    else:
        assert program == "fourrates", f"what is {program}?"
        shell(line, (0, 1) if "--fail-on" in words else (0,))


def unit(text, hook):
    """The command of a systemd unit, with its folders here."""
    (line,) = re.findall(r"^ExecStart=((?:.*\\\n)*.*)$", text, re.MULTILINE)
    line = line.replace("\\\n", " ")
    line = re.sub(r"/opt/fourrates/bin/", "", line)
    line = line.replace("/var/log/cards/predictions.csv", "payments.csv").replace("/var/lib/fourrates", ".")
    watch(re.sub(r"https://\S+", hook, " ".join(line.split())))


def crontab(text):
    """The command of a line for cron, with a stand-in for mail."""
    line = text.split(None, 5)[5].replace("/srv/cards", str(Path.cwd()))
    Path("nightly.sh").write_bytes((ROOT / "examples/deploy/nightly.sh").read_bytes())
    Path("nightly.sh").chmod(0o755)
    Path("stand-ins").mkdir(exist_ok=True)
    Path("stand-ins/mail").write_text('#!/bin/sh\ncat > mailed.txt\necho "$2" >> mailed.txt\n')
    Path("stand-ins/mail").chmod(0o755)
    shell(line)
    assert "drift" in Path("mailed.txt").read_text(), "the stream drifts, so there is a mail"
    Path("mailed.txt").unlink()
    shell(line)
    assert "no new events" in Path("mailed.txt").read_text(), "the second night has nothing new: that is a mail too"


def python(text, names):
    if ">>>" in text:
        test = doctest.DocTestParser().get_doctest(text, {}, "page", None, 0)
        assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0, text
    else:
        exec(compile(text, "page", "exec"), names)


# Pages ------------------------------------------------------------------------------------------------------


def walk(page, hook):
    names = {"stream": list(zip(*SCENARIOS["Imbalance2"].stream(seed=1), strict=True)), "retrain_on": len}
    done = 0
    for kind, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if kind == "bash":
            for line in filter(None, text.splitlines()):
                command(line, hook)
        elif kind == "python":
            tell("  python: " + text.strip().splitlines()[-1])
            python(text, names)
        elif kind == "ini":
            unit(text, hook)
        elif kind == "text" and re.match(r"[\d*]+ [\d*]+ \* \* \*", text):
            crontab(text)
        else:
            continue
        done += 1
    assert done, f"nothing to run on {page}"


def main():
    import fourrates

    assert Path(fourrates.__file__).is_relative_to(sys.prefix), f"{fourrates.__file__} is not the installed one"
    pages = [Path(name).resolve() for name in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder, receiver() as hook:
        os.chdir(folder)
        os.environ |= {"FOURRATES_CACHE": folder, "FOURRATES_STATE": folder}
        make_files()
        for page in pages:
            tell(page.name)
            walk(page, hook)
        os.chdir("/")
    tell("every command and snippet works")


if __name__ == "__main__":
    main()
