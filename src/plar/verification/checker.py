"""`plar.verify`: checks a proof against a table, line by line, in whole numbers and without a solver."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, Unpack, cast

from plar.coding.column_names import ColumnName
from plar.engines.base import Engine, GranuleSet
from plar.engines.clauses import ClauseFinder
from plar.errors import ProofError
from plar.granules.fingerprint import fingerprint_text, spell_json
from plar.measures import Measure, as_measure
from plar.options import ReadingKwargs, ReadOptions, RunOptions
from plar.results.proof import Proof, as_proof
from plar.session.progress import reporting
from plar.session.reporter import Progress
from plar.session.session import Session, has_roles
from plar.verification.witnesses import Witnesses, first_false

__all__ = ["verify"]


def verify(
    proof: Proof | str | os.PathLike[str],
    data: Any,
    decision: ColumnName | Sequence[ColumnName] | None = None,
    y: Any = None,
    *,
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **reading: Unpack[ReadingKwargs],
) -> bool:
    """Check a proof of ``search="smallest"`` against the table; other parameters are those of `reduce`.

    Decision, conditions and cut points are those of the proof unless given. It returns True if the table is
    that of the proof, the set preserves Θ(D|C), respects `include` and `exclude` and has the stated cost, two
    rows of the table prove each clause, and the bound follows from the clauses; otherwise a ProofError says
    what does not hold.

    Examples
    --------
    >>> import plar
    >>> table = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [0, 1, 1, 0], "d": [0, 0, 1, 1]}
    >>> proof = plar.reduce(table, "d", search="smallest").proof
    >>> proof.attributes, proof.gap, plar.verify(proof, table)
    (('a',), 0, True)
    """
    checked_proof = as_proof(proof)
    stated = cast(ReadingKwargs, {name: value for name, value in reading.items() if value is not None})
    read = as_for_proof(checked_proof, data, ReadOptions.of(verify, decision, y, stated))
    run = RunOptions(engine=engine, n_jobs=n_jobs, memory_limit=memory_limit)
    with reporting(verbose, progress, None) as reporter, Session(data, read, run, reporter) as session:
        verify_in(session, checked_proof)
    return True


def verify_in(session: Session, proof: Proof) -> None:
    """Check a proof against the table of a session; a ProofError says what does not hold."""
    measure = as_measure(proof.measure)
    session.tell_size()
    _check_table(proof, session.granules)
    _Verifier(proof, measure, session.engine.clause_finder(session.granules, measure)).run()


def as_for_proof(proof: Proof, data: Any, reading: ReadOptions) -> ReadOptions:
    """How the table is read: by the options given, else as for the proof."""
    conditions = list(proof.conditions) if reading.conditions is None else reading.conditions
    if has_roles(data):
        return replace(reading, conditions=conditions)
    decision = reading.decision
    if decision is None and reading.y is None:
        decision = list(proof.decision)
    bins = reading.bins
    if bins is None:
        bins = {name: list(proof.cuts[name]) for name in proof.conditions if name in proof.cuts} or None
    decision_bins = reading.decision_bins
    if decision_bins is None:
        decision_bins = next((list(proof.cuts[name]) for name in proof.decision if name in proof.cuts), None)
    return replace(reading, conditions=conditions, decision=decision, bins=bins, decision_bins=decision_bins)


def _check_table(proof: Proof, granules: GranuleSet) -> None:
    for what, name in {"conditions": "conditions", "decision": "decision", "objects": "n_objects"}.items():
        there, here = getattr(proof, name), getattr(granules, name)
        if there != here:
            raise ProofError(f"The proof is of another table: its {what} are {there!r}, here {here!r}.")
    if dict(proof.cuts) != dict(granules.cuts):
        raise ProofError("The proof is of another table: its cut points differ. Leave bins out to take them from it.")
    if proof.fingerprint != fingerprint_text(granules.fingerprint()):
        raise ProofError("The proof is of another table: the values differ. Pass the table that it was made of.")


class _Verifier:
    """A proof and the table that it is about."""

    def __init__(self, proof: Proof, measure: Measure, clause_finder: ClauseFinder) -> None:
        self.proof = proof
        self.measure = measure
        self.clause_finder = clause_finder
        self.places = {name: a for a, name in enumerate(proof.conditions)}
        self.costs = [proof.costs.get(name, 1) for name in proof.conditions]

    def run(self) -> None:
        """Check all lines."""
        proof = self.proof
        chosen = self._positions("The 'attributes'", proof.attributes)
        include = self._positions("The 'include'", proof.include)
        exclude = self._positions("The 'exclude'", proof.exclude)
        self._positions("The 'costs'", proof.costs)
        if not include <= chosen or chosen & exclude:
            raise ProofError("The columns of the proof leave out some of 'include', or contain some of 'exclude'.")
        cost = sum(self.costs[a] for a in chosen)
        if cost != proof.cost:
            raise ProofError(f"The columns cost {cost}, but the proof says {proof.cost}.")
        if not self.clause_finder.preserve([chosen])[0]:
            raise ProofError("The columns of the proof do not keep all information about the decision.")
        self.clauses = [self._positions(f"Clause {i}", clause.attributes) for i, clause in enumerate(proof.clauses)]
        self._check_witnesses()
        bound = self._bound(include, exclude)
        if bound != proof.lower_bound:
            raise ProofError(f"The tree of the proof bounds the cost by {bound}, not by {proof.lower_bound}.")

    def _positions(self, where: str, names: Collection[str]) -> frozenset[int]:
        if unknown := [name for name in names if not isinstance(name, str) or name not in self.places]:
            raise ProofError(f"{where} of the proof names {unknown[0]!r}, which is not among its columns.")
        if len(set(names)) < len(names):
            raise ProofError(f"{where} of the proof names a column twice.")
        return frozenset(self.places[name] for name in names)

    def _check_witnesses(self) -> None:
        false = first_false(list(self._witnesses()), self.clause_finder, self.measure)
        if false is not None:
            raise ProofError(f"Clause {false[0]} of the proof does not hold: {false[1]}.")

    def _witnesses(self) -> Iterator[Witnesses]:
        """The two rows of each clause, with the values that the second has in common with the first."""
        for i, clause in enumerate(self.proof.clauses):
            if len(clause.row) != len(self.places) or len(clause.other) != len(clause.attributes):
                raise ProofError(f"Clause {i} of the proof does not hold: it lacks values, or has too many.")
            row = [spell_json(value) for value in clause.row]
            other = list(row)
            for name, value in zip(clause.attributes, clause.other, strict=True):
                other[self.places[name]] = spell_json(value)
            yield Witnesses(self.clauses[i], tuple(row), tuple(other))

    def _bound(self, include: frozenset[int], exclude: frozenset[int]) -> int | None:
        """The least cost by the leaves of the tree, each for sets that hold some attributes and not others."""
        waiting = [(include, exclude)]
        bounds: list[int] = []
        for i, node in enumerate(self.proof.tree):
            if not waiting:
                raise ProofError(f"Node {i} of the proof belongs to no branch.")
            taken, left_out = waiting.pop()
            if set(node) == {"attribute"}:
                branch = self._positions(f"Node {i}", [node["attribute"]])
                if branch <= taken | left_out:
                    raise ProofError(f"Node {i} of the proof branches on {node['attribute']!r} a second time.")
                waiting += [(taken, left_out | branch), (taken | branch, left_out)]
            elif set(node) == {"unhit"}:
                if not self._clause(i, node["unhit"]) <= left_out:
                    raise ProofError(f"Node {i} of the proof does not hold: clause {node['unhit']} can still be hit.")
            elif set(node) == {"scale", "weights"}:
                bounds.append(self._weighed(i, node["scale"], node["weights"], taken, left_out))
            else:
                raise ProofError(
                    f"Node {i} of the proof is neither a branch, nor weights, nor an unhit clause: {dict(node)!r}."
                )
        if waiting:
            raise ProofError(f"The proof ends too early: branches without a leaf: {len(waiting)}.")
        return min(bounds, default=None)

    def _weighed(self, i: int, scale: Any, weights: Any, taken: frozenset[int], left_out: frozenset[int]) -> int:
        """The least cost of a set, by weights of clauses that exceed no attribute's cost."""
        pairs = isinstance(weights, (list, tuple)) and all(
            isinstance(w, (list, tuple)) and len(w) == 2 for w in weights
        )
        if not pairs or any(type(n) is not int or n < 1 for n in [scale, *(weight for _, weight in weights)]):
            raise ProofError(f"Node {i} of the proof has weights that are not positive whole numbers.")
        loads: Counter[int] = Counter()
        for number, weight in weights:
            clause = self._clause(i, number)
            if clause & taken:
                raise ProofError(f"Node {i} of the proof weighs clause {number}, which is hit already.")
            loads.update(dict.fromkeys(clause - left_out, weight))
        if any(load > self.costs[a] * scale for a, load in loads.items()):
            raise ProofError(f"Node {i} of the proof does not hold: a column has more weight than it costs.")
        least: int = -(-sum(weight for _, weight in weights) // scale)
        return sum(self.costs[a] for a in taken) + least

    def _clause(self, i: int, number: Any) -> frozenset[int]:
        if type(number) is not int or not 0 <= number < len(self.clauses):
            raise ProofError(f"Node {i} of the proof names the clause {number!r}, of {len(self.clauses)}.")
        return self.clauses[number]
