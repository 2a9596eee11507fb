"""What is looked up by its name: each in a module of its own, which is imported when it is first asked for."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

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
            from clusters.declared import suggestion

            raise BadInput(f"{self._what} {name!r} is unknown; {suggestion(name, self.modules)}")
        kind: T = import_module(self.modules[name]).KIND
        return kind

    def __contains__(self, name: object) -> bool:
        return name in self.modules

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)


class Known(Mapping[str, T], Generic[T]):
    """What is known by name: what is the suite's ``own``, and what others add meanwhile."""

    def __init__(self, own: Mapping[str, T], added: Callable[[], Iterable[Mapping[str, T]]]) -> None:
        self.own = own
        self._added = added

    def __getitem__(self, name: str) -> T:
        if name in self.own:
            return self.own[name]
        for added in self._added():
            if name in added:
                return added[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        for added in self._added():
            yield from added

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Later:
    """What ``later`` gives: all that is asked of it is asked of the object itself."""

    def __init__(self, where: str) -> None:
        self._where = where

    def _found(self) -> Any:
        module, _, name = self._where.partition(":")
        return getattr(import_module(module), name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found(), name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._found()(*args, **named)

    def __getitem__(self, key: Any) -> Any:
        return self._found()[key]

    def __contains__(self, key: object) -> bool:
        return key in self._found()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found())


def later(where: str) -> Any:
    """Stands for an object of a module (``module:NAME``) that is imported when something is first asked of it.

    For a function, a table or a sequence that is registered at every start, and needed in few sessions.
    """
    return _Later(where)
