"""The compiled parts; everything else about the package is in pyproject.toml."""

import os
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Contraction to fused multiply-add would make the last bit of a statistic depend on the processor.
# Debugging symbols would make up most of a wheel.
STRICT = ["-O3", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno", "-g0"]
FLAGS = ["/O2"] if sys.platform == "win32" else STRICT
LINK = []
# For the tests to try, see `make sanitized`: with FOURRATES_BOUNDSCHECK=1 every index into an array is checked, with
# FOURRATES_SANITIZE=1 every access to memory is, by AddressSanitizer. What comes behind counts: -O1 and -g.
CHECKED = os.environ.get("FOURRATES_BOUNDSCHECK") == "1"
SANITIZED = os.environ.get("FOURRATES_SANITIZE") == "1"
if CHECKED or SANITIZED:
    FLAGS = [*FLAGS, "-O1", "-g"]
if SANITIZED:
    LINK = ["-fsanitize=address"]
    FLAGS = [*FLAGS, *LINK, "-fno-omit-frame-pointer"]
PROCESSORS = os.cpu_count() or 1


class BuildOnce(build_ext):
    """On all processors; an editable installation in build/ too, so that only what changed is compiled again."""

    def finalize_options(self):
        self.parallel = PROCESSORS
        if self.editable_mode:
            place = f"{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
            self.build_lib, self.build_temp = f"build/lib.{place}", f"build/temp.{place}"
        super().finalize_options()


if __name__ == "__main__":  # or every process that cythonize starts would build too
    setup(
        cmdclass={"build_ext": BuildOnce},
        ext_modules=cythonize(
            [
                Extension(
                    f"fourrates.kernel.{source.stem}",
                    [str(source)],
                    depends=["setup.py"],
                    extra_compile_args=FLAGS,
                    extra_link_args=LINK,
                )
                for source in sorted(Path("src/fourrates/kernel").glob("*.pyx"))
            ],
            nthreads=PROCESSORS,
            build_dir="build/checked" if CHECKED else None,  # apart, or the next build would take it for its own
            compiler_directives={
                "language_level": "3",
                "boundscheck": CHECKED,
                "wraparound": False,
                "cdivision": True,
                "initializedcheck": CHECKED,
                "embedsignature": True,
            },
        ),
    )
