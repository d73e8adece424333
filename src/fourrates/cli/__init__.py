"""The command line: ``fourrates detect``, ``check``, ``watch``, ``serve``, ``demo`` and more.

Results go to the standard output, messages to the standard error. An input error is one line with exit status 2; a
defect of ours has exit status 3, undelivered alerts have 4. If whoever reads the output stops early, it is 141.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

from fourrates.lazy import install

REFUSED, DEFECT, UNDELIVERED, INTERRUPTED, UNREAD = 2, 3, 4, 130, 141  # exit status


def main() -> None:
    try:
        from fourrates.cli.app import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("click", "rich"):
            raise
        print(f"fourrates: the command line needs {error.name}: {install('cli')}", file=sys.stderr)
        sys.exit(REFUSED)
    if isinstance(sys.stdout, io.TextIOWrapper):  # characters the output cannot encode are written as escapes
        sys.stdout.reconfigure(errors="backslashreplace")
    status = run(sys.argv[1:])
    if status in (REFUSED, DEFECT, INTERRUPTED, UNREAD):  # a thread that waits for a pipe would keep the interpreter
        with suppress(OSError):
            sys.stderr.flush()
        os._exit(status)
    sys.exit(status)
