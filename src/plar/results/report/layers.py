"""What the page, the picture and the frame say of the columns that beat chance, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plar.results.report.words import aligned, bar_width, chosen, counted, p_words

if TYPE_CHECKING:
    from plar.results.relevant import Relevant

UNTESTED = "included without a test"
NO_BETTER = "no better than a shuffled target"


@dataclass(frozen=True, slots=True)
class LayeredColumn:
    """A column of the table: in which layer it is, if in any, and why."""

    name: str
    layer: int | None
    #: "relevant", "included", "rejected" or "undecided"
    role: str
    reason: str
    #: when it was added
    gain: float | None
    gain_text: str
    bar_width: str
    p_value: float | None
    p_text: str
    #: its place in the table, from 1
    place: int


def layered(relevant: Relevant) -> list[LayeredColumn]:
    """All columns: those of the layers in their order, then the others by their p-values.

    >>> import plar
    >>> bits = [[i >> j & 1 for i in range(64)] for j in range(2)]
    >>> r = plar.relevant({"noise": bits[1], "a": bits[0], "copy": bits[0], "d": bits[0]}, "d")
    >>> [(column.name, column.layer, column.role) for column in layered(r)]
    [('a', 1, 'relevant'), ('copy', 2, 'relevant'), ('noise', None, 'rejected')]
    """
    places = {name: place for place, name in enumerate(relevant.first.conditions, 1)}
    gains = {column.name: column.gain for layer in relevant.layers for column in chosen(layer)}
    known_gains = {name: gain for name, gain in gains.items() if gain is not None}
    gain_texts = dict(zip(known_gains, aligned(list(known_gains.values())), strict=True))
    largest = max(known_gains.values(), default=0.0)

    def column(name: str, layer: int | None, role: str, reason: str, p_value: float | None) -> LayeredColumn:
        return LayeredColumn(
            name=name,
            layer=layer,
            role=role,
            reason=reason,
            gain=gains.get(name),
            gain_text=gain_texts.get(name, "–"),
            bar_width=bar_width(gains.get(name), largest),
            p_value=p_value,
            p_text="–" if p_value is None else p_words(p_value, relevant.alpha),
            place=places[name],
        )

    columns = []
    for number, layer in enumerate(relevant.layers, 1):
        p_values = {step.attribute: step.p_value for step in layer.steps}
        for name in layer.attributes:
            if name in p_values:
                columns.append(column(name, number, "relevant", "beats chance", p_values[name]))
            else:
                columns.append(column(name, number, "included", UNTESTED, None))
    rest = [name for name in relevant.first.conditions if name not in gains]
    rest.sort(key=lambda name: relevant.rejected.get(name, 2.0))
    for name in rest:
        if name in relevant.rejected:
            columns.append(column(name, None, "rejected", NO_BETTER, relevant.rejected[name]))
        else:
            columns.append(column(name, None, "undecided", "the search stopped before", None))
    return columns


def n_beyond_chance(relevant: Relevant) -> int:
    """How many columns were tested and beat chance."""
    return sum(column.role == "relevant" for column in layered(relevant))


def headline(relevant: Relevant) -> str:
    """Say how many columns beat chance."""
    n = n_beyond_chance(relevant)
    n_all = len(relevant.first.conditions)
    if not n:
        return "No column beats chance" if relevant.complete else "No column beats chance so far"
    if n == n_all:
        return "The only column beats chance" if n == 1 else f"All {n:,} columns beat chance"
    return f"{n:,} of {counted(n_all, 'column')} {'beats' if n == 1 else 'beat'} chance"


def lead(relevant: Relevant) -> list[str]:
    """Say what that means, in sentences."""
    n_layers = len(relevant.layers)
    sentences = []
    n = n_beyond_chance(relevant)
    if n:
        each = "It says" if n == 1 else "Each says"
        sentences.append(f"{each} more than it would about a shuffled target, at the level {relevant.alpha:g}.")
    if n_layers > 1:
        sentences.append(
            f"They come in {n_layers:,} layers: each later one beats chance in the table without the columns before it."
        )
    n_untested = sum(column.role == "included" for column in layered(relevant))
    if n_untested:
        were = "was" if n_untested == 1 else "were"
        sentences.append(f"{counted(n_untested, 'column')} {were} {UNTESTED}.")
    if not relevant.complete:
        sentences.append("The search was stopped, by its time limit or by hand, before all layers were found.")
    return sentences
