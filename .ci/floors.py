"""Print the lowest versions that pyproject.toml allows, as constraints for pip; `make floors` tries them."""

import re
import sys
import tomllib
from pathlib import Path

REQUIREMENT = re.compile(r"([\w.-]+)(\[[\w,]+\])?(?:>=([\w.]+))?(?:\s*;.*)?")  # a marker leaves the floor where it is


def floors(project: dict, extra: str) -> dict[str, str]:
    """The lowest version of each package that the project needs with an extra, and with the extras that it names."""
    found: dict[str, str] = {}
    wanted = [*project["dependencies"], *project["optional-dependencies"][extra]]
    for requirement in wanted:
        match = REQUIREMENT.fullmatch(requirement)
        if match is None:
            raise ValueError(f"{requirement!r} is not NAME>=VERSION")
        name, extras, version = match.groups()
        if name == project["name"]:
            wanted += [one for inner in extras[1:-1].split(",") for one in project["optional-dependencies"][inner]]
        elif version is None:
            raise ValueError(f"{requirement!r} names no lowest version")
        else:  # of two floors the higher one counts
            found[name] = max(found.get(name, version), version, key=lambda text: [*map(int, text.split("."))])
    return found


if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    for name, version in sorted(floors(project, sys.argv[1]).items()):
        print(f"{name}=={version}")
