"""The proof that a set of attributes preserves Θ(D|C) and that no cheaper one does: data a short program can check.

It has two parts. Clauses: attributes of which every set that preserves Θ holds one, each with two rows of the
table that differ in these attributes alone and have different labels. And a tree that says why no cheaper set
hits them all: it branches on attributes, and at each leaf a clause can no longer be hit, or weights of the
clauses bound the cost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from plar.errors import ProofError
from plar.files.write import as_path, replacing
from plar.measures import MEASURES
from plar.options import MAX_COST
from plar.results.from_json import from_json

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Clause:
    """Attributes of which every set that preserves Θ(D|C) holds one, and why.

    Parameters
    ----------
    attributes : tuple of str
    row : tuple
        The values of a row, in the order of the conditions.
    other : tuple
        The values, in these attributes, of a row with another label; in all others it equals the first row.
    """

    attributes: tuple[str, ...]
    row: tuple[Any, ...]
    other: tuple[Any, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Proof:
    """What `plar.verify` checks: `Reduct.proof` of ``search="smallest"``.

    Parameters
    ----------
    measure : str
    conditions, decision : tuple of str
    n_objects : int
    fingerprint : str
        Of the values of the table, in any order of its rows.
    cuts : mapping of str to tuple of float
    include, exclude : tuple of str
    costs : mapping of str to int
        Those that are not 1.
    attributes : tuple of str
        The set, which preserves Θ(D|C).
    cost, lower_bound : int
        What it costs, and what every such set costs at least.
    clauses : tuple of Clause
    tree : tuple of mappings
        Nodes from the root on, each followed by those below it: ``{"attribute": a}``, followed by the sets with it,
        then those without; ``{"weights": [[clause, weight], …], "scale": s}``; or ``{"unhit": clause}``.
    """

    measure: str
    conditions: tuple[str, ...]
    decision: tuple[str, ...]
    n_objects: int
    fingerprint: str
    cuts: Mapping[str, tuple[float, ...]]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    costs: Mapping[str, int]
    attributes: tuple[str, ...]
    cost: int
    lower_bound: int
    clauses: tuple[Clause, ...]
    tree: tuple[Mapping[str, Any], ...]

    @property
    def gap(self) -> int:
        """How much cheaper another set might still be; 0 if none is."""
        return self.cost - self.lower_bound

    def __repr__(self) -> str:
        bounds = f"costs {self.cost}, at least {self.lower_bound}"
        return f"<Proof: {bounds}, {len(self.clauses)} clauses, {len(self.tree)} nodes>"

    def to_dict(self) -> dict[str, Any]:
        """The proof as JSON can hold it."""
        return {"plar_proof": _VERSION, **asdict(self)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the proof as JSON, whole or not at all."""
        with replacing(as_path(path)) as temporary:
            temporary.write_text(self._text() + "\n", encoding="ascii")

    def _text(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=True, separators=(",", ":"))

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Proof:
        """Read a proof that `save` wrote."""
        try:
            text = as_path(path).read_bytes()
        except OSError as error:
            raise ProofError(f"Cannot read {str(path)!r}: {error.strerror}.") from None
        return _from_text(text, repr(str(path)))


def as_proof(proof: Proof | str | os.PathLike[str]) -> Proof:
    """Read a proof from a file; one made in Python is checked as if it came from there."""
    if not isinstance(proof, Proof):
        return Proof.open(proof)
    try:
        text = proof._text()
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ProofError(f"The proof is not as plar.reduce makes it: {error}.") from None
    return _from_text(text, "The Proof object")


def _from_text(text: str | bytes, where: str) -> Proof:
    """A proof whose fields have their types and possible values; `plar.verify` checks what it says."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise ProofError(f"{where} is not a proof: it is not valid JSON. Make it with Proof.save.") from None
    version = fields.get("plar_proof") if isinstance(fields, dict) else None
    if version != _VERSION:
        raise ProofError(f"{where} is not a proof of version {_VERSION}. Got {version!r}; save it again.")
    try:
        proof: Proof = from_json(Proof, fields)
    except (TypeError, OverflowError, ValueError) as error:
        raise ProofError(f"{where} is not a proof: {error} is missing or does not fit.") from None
    if proof.measure not in MEASURES:
        raise ProofError(f"The measure of the proof is {proof.measure!r}. It must be one of {', '.join(MEASURES)}.")
    for cost in proof.costs.values():
        if not 1 <= cost <= MAX_COST:
            raise ProofError(f"A cost of the proof is {cost}. It must be from 1 to {MAX_COST:,}.")
    if not 0 <= proof.lower_bound <= proof.cost:
        raise ProofError(
            f"The proof says that its columns cost {proof.cost}, and all sets at least {proof.lower_bound}. "
            "The second must be from 0 to the first."
        )
    return proof
