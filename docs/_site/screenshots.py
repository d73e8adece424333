"""Pictures of the report, `watch`, a notebook and the live page, as they are, for the README: ``make screenshots``.

Each is made from the stream of the demo by what a person would run: the command line, `watch` in a terminal (tmux), a
notebook executed by nbconvert. Chromium draws them; they are kept small.
"""

from __future__ import annotations

import io
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from fourrates.streams import fraud

PICTURES = Path(__file__).parents[1] / "pictures"
FOURRATES = [sys.executable, "-m", "fourrates"]
COLOURS = 255  # of a picture: enough for text and thin lines in colour, and a third of the bytes
SEEN = 121_500  # events of the stream: shortly after the alarm
PORT = 8439  # of the live page
COLUMNS, LINES = 100, 30  # of the terminal


def shoot(page: Path | str, name: str, width: int, height: int, *more: str) -> None:
    """Draw a page, cut off what is empty at its end, and keep it."""
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        chromium = shutil.which("chromium") or "google-chrome"
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1.5"]
        address = page if isinstance(page, str) else page.resolve().as_uri()
        command = [chromium, *flags, *more, f"--window-size={width},{height}", f"--screenshot={shot}", address]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        image = Image.open(io.BytesIO(shot.read_bytes())).convert("RGB")
    pixels = np.asarray(image)
    used = np.flatnonzero((pixels != pixels[-1, -1]).any(axis=(1, 2)))
    image = image.crop((0, 0, image.width, min(image.height, int(used[-1]) + 24)))
    PICTURES.mkdir(exist_ok=True)
    path = PICTURES / f"{name}.png"
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {image.width} x {image.height}, {path.stat().st_size // 1000} kB")


def write(path: Path, part: slice = slice(None)) -> None:
    """The stream of the demo, or the beginning of it."""
    stream = fraud(seed=5)
    rows = zip(np.datetime_as_string(stream.times[part]), stream.y_true[part], stream.y_pred[part], strict=True)
    path.write_text("timestamp,y_true,y_pred\n" + "".join(f"{when},{truth},{pred}\n" for when, truth, pred in rows))


def report(folder: Path) -> None:
    """The page that `detect --report` writes."""
    page = folder / "report.html"
    command = [*FOURRATES, "detect", "transactions.csv", "--report", page.name]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    shoot(page, "report", 1100, 690)


def watch(folder: Path) -> None:
    """`watch` in a terminal, shortly after it found the fall."""
    from rich.console import Console
    from rich.terminal_theme import MONOKAI
    from rich.text import Text

    log = folder / "log.csv"
    write(log, slice(0, SEEN))
    server = ["tmux", "-L", "fourrates-pictures"]
    command = f"cd {shlex.quote(str(folder))} && {shlex.join([*FOURRATES, 'watch', log.name])}"
    started = [*server, "new-session", "-d", "-s", "watch", "-x", str(COLUMNS), "-y", str(LINES), command]
    subprocess.run(started, check=True)
    try:
        seen, before = "", None
        for _ in range(120):  # until it has read all there is
            time.sleep(0.5)
            seen = subprocess.run(
                [*server, "capture-pane", "-e", "-p", "-t", "watch"], check=True, capture_output=True, text=True
            ).stdout
            if f"{SEEN:,} events" in seen and seen == before:
                break
            before = seen
    finally:
        subprocess.run([*server, "kill-server"], check=False, capture_output=True)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(seen.rstrip()))
    page = folder / "watch.html"
    page.write_text(console.export_html(theme=MONOKAI, inline_styles=True))
    shoot(page, "watch", 990, 700)


def notebook(folder: Path) -> None:
    """Findings in a notebook."""
    import nbformat

    cells = ["import fourrates as fr\n\nfound = fr.detect('transactions.csv')\nfound"]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(made, folder / "monday.ipynb")
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--execute", "monday.ipynb"]
    subprocess.run(command, check=True, capture_output=True, cwd=folder, timeout=300)
    shoot(folder / "monday.html", "notebook", 900, 700)


# The service by a clock that runs so many times as fast: the demonstration then lasts hours, as streams do.
HURRIED = """
import sys, time
from fourrates.serve.clock import Clock
began = time.time()
Clock.now = lambda self: began + (time.time() - began - 12.5) * 1500  # the present when all is sent
from fourrates.__main__ import main
main()
"""


def live(folder: Path) -> None:
    """The live page while a drift is open."""
    sys.path.insert(0, str(PICTURES.parents[1]))
    from examples.serve_demo import Demo, Service, wait_until_ready

    arguments = ["serve", "--data", str(folder / "served"), "--port", str(PORT)]
    process = subprocess.Popen([sys.executable, "-c", HURRIED, *arguments], stdout=subprocess.DEVNULL)
    try:
        service = Service(f"http://127.0.0.1:{PORT}")
        wait_until_ready(service, process)
        demo = Demo(service)
        demo.create()
        began = time.monotonic()
        for step in range(175):
            demo.step()
            time.sleep(max(0.0, began + 0.065 * step - time.monotonic()))
        shoot(f"{service.address}/#/monitor/card%20fraud", "live", 1280, 760, "--virtual-time-budget=8000")
    finally:
        process.terminate()
        process.wait(30)


def main() -> None:
    """Make them all, or those named."""
    makers = {maker.__name__: maker for maker in (report, watch, notebook, live)}
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "transactions.csv")
        for name in sys.argv[1:] or makers:
            makers[name](Path(folder))


if __name__ == "__main__":
    main()
