"""A monitor service and a PostgreSQL of our own: started, killed, started again; on the loopback, in scratch places."""

from __future__ import annotations

import http.client
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

PATIENCE = 300.0  # seconds for a start, of a machine that does other things too


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Server:
    """``fourrates serve`` in a process of its own."""

    def __init__(self, data: Path, *options: str, port: int | None = None, **settings: object) -> None:
        self.data, self.options, self.port = data, options, port or free_port()
        settings = {"log_level": "warning", **settings}
        self.settings = {f"FOURRATES_SERVE_{name.upper()}": str(value) for name, value in settings.items()}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, wait: bool = True, **environment: str) -> Server:
        """Start it, and wait until it answers."""
        command = "import sys; from fourrates.cli import main; sys.argv[0] = 'fourrates'; main()"
        arguments = ["serve", "--data", str(self.data), "--port", str(self.port)]
        with open(self.data.with_suffix(".log"), "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", command, *arguments, *self.options],
                stdout=log,
                stderr=log,
                env=os.environ | {"OMP_NUM_THREADS": "1"} | self.settings | environment,
            )
        if wait:
            self.wait()
        return self

    def wait(self) -> None:
        """Wait until it answers."""
        assert self.process is not None
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with suppress(OSError, http.client.HTTPException), Client(self.port, timeout=5) as client:
                if client.call("GET", "/readyz")[0] == 200:
                    return
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended: {self.data.with_suffix('.log').read_text()[-2000:]}")
            time.sleep(0.02)
        raise RuntimeError("the server does not answer")

    def kill(self) -> None:
        """SIGKILL."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Ask it to end."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(180)

    def memory(self, field: str = "VmRSS") -> int:
        """Bytes of it in memory; with "VmHWM" the most there were."""
        assert self.process is not None
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError(f"no {field}")

    def processor_time(self) -> float:
        """Seconds of processor time it has used."""
        assert self.process is not None
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()


class Client:
    """One connection."""

    def __init__(self, port: int, timeout: float = 30.0) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Status and content of the answer."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, data, {"content-type": "application/json"} | named)
        answer = self.connection.getresponse()
        content = answer.read()
        is_json = "json" in answer.headers.get("content-type", "")
        return answer.status, json.loads(content) if content and is_json else content

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()


def postgres_programs() -> Path | None:
    """The folder with Debian's newest initdb and postgres, if there is one."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: float(one.parent.name))
    found = [folder for folder in folders if (folder / "initdb").exists()]
    return found[-1] if found else None


class Postgres:
    """A PostgreSQL in a scratch folder, reached by a socket in it."""

    def __init__(self, **settings: str) -> None:
        programs = postgres_programs()
        if programs is None:
            raise RuntimeError("PostgreSQL is not installed: apt-get install postgresql")
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="fourrates-pg-"))
        self.user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
        if os.getuid() == 0:  # it refuses to run as root
            shutil.chown(self.folder, "postgres", "postgres")
        self.settings = settings
        self._run("initdb", "-D", str(self.folder / "data"), "-U", "fourrates", "--auth=trust", "--no-sync")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"postgresql://fourrates@/postgres?host={self.folder}"

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self.programs / program, *arguments], user=self._as(), check=True, capture_output=True, cwd=self.folder
        )

    def _as(self) -> str | None:
        return "postgres" if os.getuid() == 0 else None

    def start(self) -> Postgres:
        """Start it, and wait until it answers."""
        settings = [f"-c{name}={value}" for name, value in self.settings.items()]
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with open(self.folder / "log", "ab") as log:
                self.process = subprocess.Popen(
                    [
                        self.programs / "postgres",
                        "-D",
                        self.folder / "data",
                        "-k",
                        self.folder,
                        "-clisten_addresses=",
                        *settings,
                    ],
                    user=self._as(),
                    stdout=log,
                    stderr=log,
                    cwd=self.folder,
                )
            while self.process.poll() is None and time.monotonic() < until:
                ready = [self.programs / "pg_isready", "-q", "-h", self.folder]
                if subprocess.run(ready, user=self._as(), check=False).returncode == 0:
                    return self
                time.sleep(0.05)
            time.sleep(0.2)  # what the killed one left in shared memory is still in use
        raise RuntimeError(f"PostgreSQL does not start: {(self.folder / 'log').read_text()[-2000:]}")

    def kill(self) -> None:
        """SIGKILL."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End it, and remove what it kept."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(180)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Postgres:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class Proxy:
    """Between a server and its PostgreSQL, on a port of the loopback: it cuts the connection when it is asked to."""

    def __init__(self, postgres: Postgres) -> None:
        self._path = str(postgres.folder / ".s.PGSQL.5432")
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://fourrates@127.0.0.1:{self._listening.getsockname()[1]}/postgres"
        self._open: list[tuple[socket.socket, socket.socket]] = []  # to the server, and to the database
        self._kept: set[socket.socket] = set()  # sessions of the database that nobody uses
        self._left, self._late, self._keep = -1, False, False
        self._away = self._closed_until = 0.0
        self.was_cut = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after(self, messages: int, *, late: bool = False, keep: bool = False, away: float = 0.0) -> None:
        """Cut when the server has sent so many messages from now on.

        `late` passes the last one on, so that only its answer is lost; `keep` leaves the database with a session that
        nobody uses; `away` refuses new connections for so many seconds.
        """
        self.was_cut.clear()
        self._late, self._keep, self._away = late, keep, away
        self._left = messages

    def lose(self) -> None:
        """The server is cut off, and the database does not know."""
        for server, database in self._open:
            self._kept.add(database)
            self._end(server)

    def close(self) -> None:
        """End it, with all connections."""
        for one in (self._listening, *(end for pair in self._open for end in pair)):
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                server = self._listening.accept()[0]
                if time.monotonic() < self._closed_until:
                    server.close()
                    continue
                database = socket.socket(socket.AF_UNIX)
                database.connect(self._path)
                server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open.append((server, database))
                threading.Thread(target=self._from_server, args=(server, database), daemon=True).start()
                threading.Thread(target=self._from_database, args=(server, database), daemon=True).start()

    def _from_server(self, server: socket.socket, database: socket.socket) -> None:
        """Pass on what a server says, message by message: a letter, a length of four bytes, and so much less four."""
        waiting = b""
        with suppress(OSError):
            while data := server.recv(1 << 16):
                waiting += data
                while len(waiting) >= 5:
                    head = 1 if waiting[0] else 0  # the first messages have no letter
                    size = head + int.from_bytes(waiting[head : head + 4], "big")
                    if len(waiting) < size:
                        break
                    message, waiting = waiting[:size], waiting[size:]
                    self._left -= 1
                    if self._left == 0:
                        if self._late:
                            database.sendall(message)
                        self._cut(server, database)
                        return
                    database.sendall(message)
        if database not in self._kept:
            self._end(database)

    def _cut(self, server: socket.socket, database: socket.socket) -> None:
        self._closed_until = time.monotonic() + self._away
        if self._keep:
            self._kept.add(database)
        else:
            self._end(database)
        self._end(server)
        self.was_cut.set()

    def _from_database(self, server: socket.socket, database: socket.socket) -> None:
        with suppress(OSError):
            while data := database.recv(1 << 16):
                server.sendall(data)
        self._end(server)

    @staticmethod
    def _end(one: socket.socket) -> None:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
