"""The compiled parts; everything else about the package stands in pyproject.toml."""

import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

# Contraction to fused multiply-add would make the last bit of a statistic depend on the processor.
# Debugging symbols would make up most of a wheel.
FLAGS = ["/O2"] if sys.platform == "win32" else ["-O3", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno", "-g0"]

setup(
    ext_modules=cythonize(
        [
            Extension(f"fourrates.kernel.{source.stem}", [str(source)], extra_compile_args=FLAGS)
            for source in sorted(Path("src/fourrates/kernel").glob("*.pyx"))
        ],
        compiler_directives={
            "language_level": "3",
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "embedsignature": True,
        },
    )
)
