"""Objects that installed packages add to the library by entry points."""

from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from dre_jax.errors import ConfigError, MissingExtraError

_Kind = TypeVar("_Kind")


def plug_ins(group: str) -> dict[str, list[EntryPoint]]:
    """Returns the entry points of a group by name; packages that share a name are in the same list."""
    points: dict[str, list[EntryPoint]] = {}
    for point in sorted(entry_points(group=group)):
        points.setdefault(point.name, []).append(point)
    return points


def load_plug_in(group: str, name: str, kind: type[_Kind], what: str) -> _Kind | None:
    """Returns the object of an entry point; None if no package has one of this name.

    Args:
      group: of the entry point.
      name: of the entry point.
      kind: class that the object must have.
      what: what messages call the object.

    Raises:
      ConfigError: if the object cannot be loaded or is no ``kind``, or if two packages have different ones.
      MissingExtraError: as raised by the package, which says itself what to install.
    """
    points = plug_ins(group).get(name, [])
    if not points:
        return None
    values = sorted({point.value for point in points})
    rule = f"{what} {name}: entry point {values[0]}"
    if len(values) > 1:
        raise ConfigError(f"{rule} must have a name of its own, but {values[1]} has the same")
    try:
        target = points[0].load()
    except MissingExtraError:
        raise
    except Exception as error:  # whatever the module does while it is imported
        raise ConfigError(f"{rule} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(target, kind):
        raise ConfigError(f"{rule} must be an {kind.__name__}, but is {target!r}")
    return target
