"""``python -m fourrates``."""

from fourrates.cli import main

main()
