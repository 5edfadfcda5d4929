"""polars, imported when it is first used: that takes as long as a whole short run, and text files do not need it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["pl"]

if TYPE_CHECKING:
    import polars as pl
else:

    class _Polars:
        """Its attributes are those of polars; each is looked up once."""

        def __getattr__(self, name: str) -> Any:
            attribute = getattr(import_module("polars"), name)
            setattr(self, name, attribute)
            return attribute

    pl = _Polars()
