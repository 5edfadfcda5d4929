"""Columns given as such, or as a result that has chosen them."""

from __future__ import annotations

from collections.abc import Iterator

from plar.errors import Parameter, ParameterError
from plar.options import Columns
from plar.results.approximations import Approximations
from plar.results.reduct import Reduct
from plar.results.reduct_list import Reducts
from plar.results.relevant import Relevant
from plar.results.rules import Rules
from plar.results.selection import Selection


def chosen_columns(attributes: object) -> Columns | None:
    """The columns of a reduct, a selection or all layers of relevant columns; anything else names columns itself."""
    if isinstance(attributes, Reduct):
        return attributes.attributes
    if isinstance(attributes, Selection):
        return attributes.columns
    if isinstance(attributes, Relevant):
        return tuple(name for layer in attributes.layers for name in layer.attributes)
    if isinstance(attributes, (Approximations, Reducts, Rules)):
        raise ParameterError(
            Parameter("attributes"),
            " must be None, a list of columns, a Reduct, a Relevant or a Selection. "
            f"Got {type(attributes).__name__} instead.",
        )
    if isinstance(attributes, Iterator):
        return tuple(attributes)  # they are looked at more than once
    return attributes  # type: ignore[return-value]  # refused later if it names no columns
