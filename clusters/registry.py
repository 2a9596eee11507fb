"""What is looked up by its name: each in a module of its own, which is imported when it is first asked for."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Generic, TypeVar

from clusters.declared import suggestion
from clusters.errors import BadInput

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Modules by name; what is looked up is what a module calls ``KIND``. ``what``: what they are, in the singular."""

    def __init__(self, what: str, modules: Mapping[str, str]) -> None:
        self._what = what
        self.modules = dict(modules)
        """May be added to: one line for each."""

    def __getitem__(self, name: str) -> T:
        """Import and return it. Raises ``BadInput``, with what may have been meant, for an unknown name."""
        if name not in self.modules:
            raise BadInput(f"{self._what} {name!r} is unknown; {suggestion(name, self.modules)}")
        kind: T = import_module(self.modules[name]).KIND
        return kind

    def __contains__(self, name: object) -> bool:
        return name in self.modules

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)
