"""Which packages burnish asks for, and which of them are here; read from the installed distribution itself."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata

from packaging.requirements import Requirement

_NAME = "burnish"


@dataclass(frozen=True)
class Package:
    """A package that burnish asks for (``wanted``: name and versions) and the version that is here, if any."""

    name: str
    wanted: str
    installed: str | None
    satisfied: bool

    @property
    def missing(self) -> bool:
        """Not here, or in a version that does not do."""
        return not self.satisfied


@dataclass(frozen=True)
class Extra:
    """An optional part of burnish and the packages it adds."""

    name: str
    packages: tuple[Package, ...]

    @property
    def complete(self) -> bool:
        """Whether everything it needs is here."""
        return all(package.satisfied for package in self.packages)

    @property
    def command(self) -> str:
        """What installs it."""
        return f"pip install '{_NAME}[{self.name}]'"


def base(distribution: str = _NAME) -> tuple[Package, ...]:
    """The packages that burnish always needs.

    Raises :class:`importlib.metadata.PackageNotFoundError` when running from a source tree that is not installed.
    """
    return _packages(distribution, "")


def extras(distribution: str = _NAME) -> tuple[Extra, ...]:
    """The optional parts, in the order in which the distribution declares them; raises as :func:`base` does."""
    names = metadata.metadata(distribution).get_all("Provides-Extra") or []
    return tuple(Extra(name, _packages(distribution, name)) for name in names)


def _packages(distribution: str, extra: str) -> tuple[Package, ...]:
    """What ``extra`` adds (the base for ""), extras of extras included, each package once."""
    found: dict[str, Package] = {}
    for requirement in map(Requirement, metadata.requires(distribution) or []):
        marker = requirement.marker
        if marker is not None and not marker.evaluate({"extra": extra}):
            continue
        if extra and (marker is None or marker.evaluate({"extra": ""})):
            continue  # belongs to the base
        if requirement.name == distribution:
            for inner in sorted(requirement.extras):
                found |= {package.name: package for package in _packages(distribution, inner)}
        else:
            found[requirement.name] = _package(requirement)
    return tuple(found.values())


def _package(requirement: Requirement) -> Package:
    try:
        installed = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        installed = None
    satisfied = installed is not None and requirement.specifier.contains(installed, prereleases=True)
    return Package(requirement.name, f"{requirement.name}{requirement.specifier}", installed, satisfied)
