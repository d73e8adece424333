"""The compiled parts; everything else about the package stands in pyproject.toml."""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

# Contraction to fused multiply-add would make the last bit of a statistic depend on the processor.
# Debugging symbols would make up most of a wheel.
# With FOURRATES_BOUNDSCHECK=1 every index into an array is checked, for the tests to try; see `make fuzz`.
CHECKED = os.environ.get("FOURRATES_BOUNDSCHECK") == "1"
STRICT = ["-O3", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno", "-g0"]
FLAGS = ["/O2"] if sys.platform == "win32" else STRICT

setup(
    ext_modules=cythonize(
        [
            Extension(f"fourrates.kernel.{source.stem}", [str(source)], extra_compile_args=FLAGS)
            for source in sorted(Path("src/fourrates/kernel").glob("*.pyx"))
        ],
        build_dir="build/checked" if CHECKED else None,  # apart, or the next build would take it for its own
        compiler_directives={
            "language_level": "3",
            "boundscheck": CHECKED,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": CHECKED,
            "embedsignature": True,
        },
    )
)
