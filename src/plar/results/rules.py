"""Rules: what the values of the columns say about the decision; what `plar.rules` returns."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from plar.coding.row_limit import MAX_OBJECTS
from plar.errors import TableError
from plar.matching.condition import Condition, ConditionValue
from plar.options import RULE_KINDS, TextKwargs
from plar.results.from_json import from_json
from plar.results.saved import check_settings, save, writable
from plar.runtime.interrupts import SafeInterrupts
from plar.runtime.lazy_polars import pl

if TYPE_CHECKING:
    import polars

    from plar.results.report.pages import Page

__all__ = ["Condition", "Rule", "RuleCertificate", "Rules"]

#: evidence is counted in millionths of a nat, so that sums do not depend on their order
EVIDENCE_UNITS: Final = 1_000_000
#: no rule adds more: sums of a million rules stay far below 2^63
_MOST_EVIDENCE: Final = 1_000_000 * EVIDENCE_UNITS


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: if all conditions hold, then the decision.

    Parameters
    ----------
    conditions : tuple of Condition
        In the order in which they were found. Without any, the rule matches every row.
    decision : str, int, float, bool or None
        What the rule says; intervals of a decision that was cut are text.
    counts : tuple of int
        How many of the rows that it matches have each decision, in the order of `Rules.decisions`.
    support : int
        How many of these rows have the decision.
    confidence : float
        The support as a share of the rows that it matches.
    coverage : float
        The support as a share of all rows with the decision.
    lift : float
        The confidence divided by the share of the decision among all rows.
    p_value : float or None
        Of tested rules: how likely it is by chance that a condition says as much as each of these, for the one where
        that is likeliest, times the number of conditions that were tried.
    evidence : tuple of int
        What it adds to each decision of the rows that it matches, beside the other rules, in millionths of a nat; in
        the order of `Rules.decisions`.
    """

    conditions: tuple[Condition, ...]
    decision: ConditionValue
    counts: tuple[int, ...]
    support: int
    confidence: float
    coverage: float
    lift: float
    p_value: float | None
    evidence: tuple[int, ...]

    @property
    def n_matched(self) -> int:
        """How many rows it matches."""
        return sum(self.counts)

    def __str__(self) -> str:
        """The rule in words."""
        from plar.results.report.rule_words import rule_text

        return rule_text(self)


@dataclass(frozen=True, slots=True)
class RuleCertificate:
    """What was checked of certain or possible rules, in whole numbers, after they were found.

    Parameters
    ----------
    complete : bool
        Every row of the lower (of possible rules: upper) approximation of a decision is matched by one of its rules.
    consistent : bool
        No rule matches a row outside that approximation.
    conditions_needed : bool
        Without any one of its conditions a rule would match such a row.
    rules_needed : bool
        Without any one of the rules of a decision a row of its approximation would not be matched.
    """

    complete: bool
    consistent: bool
    conditions_needed: bool
    rules_needed: bool


@dataclass(frozen=True, slots=True, repr=False)
class Rules:
    """The rules of a table; what `plar.rules` returns. It is a sequence of `Rule`.

    Parameters
    ----------
    rules : tuple of Rule
        By decision, then by support, the largest first, then as they were found.
    rule_kind : {"tested", "certain", "possible"}
    certificate : RuleCertificate or None
        What was checked of certain and possible rules.
    decisions : tuple
        The values of the decision, in their order; intervals, if it was cut.
    class_sizes : tuple of int
        How many rows have each decision.
    unmatched : tuple of int
        How many of these no rule matches.
    attributes, decision : tuple of str
        The columns that conditions could be about, and the column that the rules predict.
    left_out : mapping of str to str
        Columns that were not looked at, each with the reason.
    alpha : float or None
        The level of the test; None for certain and possible rules.
    complete : bool
        False if the time limit was reached, or Ctrl-C stopped the search.
    n_objects, n_granules : int
        Rows with a decision, counted with their weights, and how many different ones there are.
    cuts : mapping of str to tuple of float
        Cut points of the columns that were cut into bins; times in seconds.
    notes : tuple of str
        What was done without being asked for, a line each.
    engine : str
    source : str or None
        The path of the table, if it was read from one.
    settings : mapping of str to object
        The options that the result depends on.
    seconds : mapping of str to float
        By phase: read, granulate, rules.

    Examples
    --------
    >>> import plar
    >>> weather = {"outlook": ["sun", "sun", "rain", "rain"] * 8, "wind": ["no", "yes"] * 16}
    >>> weather["play"] = ["yes", "yes", "yes", "no"] * 8
    >>> rules = plar.rules(weather, "play")
    >>> print(rules[0])
    if outlook = rain and wind = yes then no
    >>> rules[0].support, rules[0].confidence, rules.predict({"outlook": ["rain"], "wind": ["no"]}).tolist()
    (8, 1.0, ['yes'])
    """

    rules: tuple[Rule, ...]
    rule_kind: str
    certificate: RuleCertificate | None
    decisions: tuple[ConditionValue, ...]
    class_sizes: tuple[int, ...]
    unmatched: tuple[int, ...]
    attributes: tuple[str, ...]
    decision: tuple[str, ...]
    left_out: Mapping[str, str]
    alpha: float | None
    complete: bool
    n_objects: int
    n_granules: int
    cuts: Mapping[str, tuple[float, ...]]
    notes: tuple[str, ...]
    engine: str
    source: str | None
    settings: Mapping[str, Any]
    seconds: Mapping[str, float]

    def __len__(self) -> int:
        """Return the number of rules."""
        return len(self.rules)

    @overload
    def __getitem__(self, place: int) -> Rule: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Rule, ...]: ...
    def __getitem__(self, place: int | slice) -> Rule | tuple[Rule, ...]:
        """Return a rule, or some of them."""
        return self.rules[place]

    def __iter__(self) -> Iterator[Rule]:
        """Go through the rules."""
        return iter(self.rules)

    def __repr__(self) -> str:
        return f"<Rules: {len(self.rules)} {self.rule_kind} rules for {', '.join(map(repr, self.decision))}>"

    def __str__(self) -> str:
        """A summary for people."""
        from plar.results.report.rule_text import summary

        return summary(self)

    def _repr_html_(self) -> str:
        """The table that a notebook shows."""
        from plar.results.report.rule_views import notebook_table

        return notebook_table(self)

    @property
    def prior(self) -> tuple[int, ...]:
        """What each decision has before any rule: ln of its smoothed share, in millionths of a nat."""
        return tuple(round(math.log(share) * EVIDENCE_UNITS) for share in prior_shares(self.class_sizes))

    def predict(self, data: Any, **reading: Unpack[TextKwargs]) -> Any:
        """Predict the decision of every row of any kind of table that has the columns of the rules.

        The rules that match a row add their `Rule.evidence` to the `prior`; the decision that has most is predicted, of
        equals the first. Of a Spark DataFrame, the result is a DataFrame with one column more, ``prediction``;
        otherwise an array. Files are read as the table of the rules was, except for the options given: `header`,
        `separator`, `decimal`, `encoding` and `na` of `plar.reduce`.

        Examples
        --------
        >>> import plar
        >>> rules = plar.rules({"a": [0, 1] * 20, "d": ["n", "y"] * 20}, "d")
        >>> rules.predict({"a": [1, 0]}).tolist()
        ['y', 'n']
        """
        from plar.results.prediction import predict

        with SafeInterrupts():
            return predict(self, data, reading)

    def predict_proba(self, data: Any, **reading: Unpack[TextKwargs]) -> Any:
        """How likely each row has each decision, in the order of `decisions`, as an array whose rows add up to 1.

        They are fitted to the rows that the rules were found in; on others they are a little too sure.
        Of a Spark DataFrame, the result is a DataFrame with a column of arrays more, ``probability``.
        """
        from plar.results.prediction import predict_proba

        with SafeInterrupts():
            return predict_proba(self, data, reading)

    def explain(self, data: Any, **reading: Unpack[TextKwargs]) -> polars.DataFrame:
        """The rules that match each row, and what they add to the decision that is predicted, as a polars frame.

        For each row there is first a line without a rule, the prior, then one for each rule. Columns: ``row`` from 0
        on, ``prediction``, ``rule`` (its place in the rules), ``text``, ``says``, ``support``, ``confidence``, and
        ``adds``, in nats; those of a row add up to the score of its prediction.
        """
        from plar.results.prediction import explain

        with SafeInterrupts():
            return explain(self, data, reading)

    def to_frame(self) -> polars.DataFrame:
        """One row for each rule, as a polars frame.

        Columns: ``rule`` (its place), ``text``, ``decision``, ``conditions`` (their number), ``support``, ``matched``
        rows, ``confidence``, ``coverage``, ``lift`` and ``p_value``.
        """
        from plar.results.report.rule_words import RuleWords

        words = RuleWords(self)
        schema = {
            "rule": pl.Int64,
            "text": pl.String,
            "decision": pl.String,
            "conditions": pl.Int64,
            "support": pl.Int64,
            "matched": pl.Int64,
            "confidence": pl.Float64,
            "coverage": pl.Float64,
            "lift": pl.Float64,
            "p_value": pl.Float64,
        }
        rows = [
            (
                number,
                writable(words.rule(rule)),
                writable(words.decision(rule.decision)),
                len(rule.conditions),
                rule.support,
                rule.n_matched,
                rule.confidence,
                rule.coverage,
                rule.lift,
                rule.p_value,
            )
            for number, rule in enumerate(self.rules)
        ]
        return pl.DataFrame(rows, schema=schema, orient="row")

    def to_sql(self, table: str = "t", dialect: str = "ansi") -> str:
        """Write a query that predicts the decision of every row of a table, exactly as `predict` does.

        It returns the columns of the table, ``score_0``, ``score_1``, …, what each decision has in millionths of a
        nat, and ``prediction``. Missing values must be NULL, and numbers and times must have such types. Names are
        quoted as the dialect does: "ansi" (PostgreSQL, DuckDB, Snowflake, SQLite, …), "sqlite" (the same, but faster
        there if there are many decisions) or "spark" (also MySQL and BigQuery).

        Examples
        --------
        >>> import plar, sqlite3
        >>> rules = plar.rules({"a": [0, 1] * 20, "d": ["n", "y"] * 20}, "d")
        >>> with sqlite3.connect(":memory:") as database:
        ...     _ = database.execute("CREATE TABLE t AS SELECT 1 AS a UNION ALL SELECT 0")
        ...     database.execute(f"SELECT a, prediction FROM ({rules.to_sql('t')}) AS p").fetchall()
        [(1, 'y'), (0, 'n')]
        """
        from plar.results.rule_sql import query

        return query(self, table, dialect)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON can hold it; the keys are the names of the fields, and `kind`."""
        return {"kind": "rules", **asdict(self)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result as JSON with a checksum, whole or not at all; `plar.load` reads it."""
        save(self.to_dict(), path)

    def report(self, path: str | os.PathLike[str] | None = None, command: str | None = None) -> Page | None:
        """Write the rules as one HTML page for people, whole or not at all; needs the extra ``report``.

        Without a path the page is returned: text that a notebook shows as a page. It loads nothing from elsewhere.
        `command` is the shell command that gave this result; by default one is made from `source` and `settings`.
        """
        from plar.results.report.pages import rules_page, save_or_return

        return save_or_return(rules_page(self, command), path)


def make_rule(
    conditions: Sequence[Condition],
    decision: int,
    counts: Sequence[int],
    p_value: float | None,
    evidence: Sequence[int],
    decisions: Sequence[ConditionValue],
    class_sizes: Sequence[int],
) -> Rule:
    """A rule with what follows from its counts; the decision is given by its number."""
    support = counts[decision]
    n_matched = sum(counts)
    class_size = class_sizes[decision]
    confidence = support / n_matched if n_matched else 0.0
    n_objects = sum(class_sizes)
    return Rule(
        conditions=tuple(conditions),
        decision=decisions[decision],
        counts=tuple(counts),
        support=support,
        confidence=confidence,
        coverage=support / class_size if class_size else 0.0,
        lift=support * n_objects / (n_matched * class_size) if support else 0.0,
        p_value=p_value,
        evidence=tuple(evidence),
    )


def prior_shares(class_sizes: Sequence[int]) -> list[float]:
    """The share of each decision, with one row more of each."""
    n_rows = sum(class_sizes) + len(class_sizes)
    return [(size + 1) / n_rows for size in class_sizes]


def as_array(decisions: Sequence[ConditionValue]) -> NDArray[Any]:
    """Decisions as an array of their type; of objects if they have several."""
    kinds = set(map(type, decisions))
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        array = np.array(decisions)
        if array.dtype.kind in "Uifb" and array.tolist() == list(decisions):  # numpy drops NULs at the end of text
            return array
    objects = np.empty(len(decisions), object)
    objects[:] = decisions
    return objects


def from_dict(saved: Mapping[str, Any], where: str = "The mapping") -> Rules:
    """Make a result from what `Rules.to_dict` returned."""
    try:
        rules: Rules = from_json(Rules, saved)
        _check(rules)
        check_settings(rules.settings)
        return rules
    except TypeError as error:
        raise TableError(f"{where} is not a saved set of rules: {error} is missing or does not fit.") from None


def _check(rules: Rules) -> None:
    """Refuse rules that do not go with the table that they are about; TypeError names the field."""
    for name, fits in _checks(rules):
        if not fits:
            raise TypeError(repr(name))


def _checks(rules: Rules) -> Iterator[tuple[str, bool]]:
    """Fields, and whether each fits those before it."""
    n_decisions = len(rules.decisions)
    sizes = rules.class_sizes
    yield "rule_kind", rules.rule_kind in RULE_KINDS
    yield "n_objects", 0 <= rules.n_objects <= MAX_OBJECTS
    yield "decision", len(rules.decision) == 1
    yield "decisions", n_decisions > 0 and len(set(map(repr, rules.decisions))) == n_decisions
    yield "class_sizes", len(sizes) == n_decisions and min(sizes) >= 0 and sum(sizes) == rules.n_objects
    yield "unmatched", _are_up_to(rules.unmatched, sizes)
    yield "rules", all(_fits(rule, rules) for rule in rules.rules)
    yield "rules", _are_of_one_kind([condition for rule in rules.rules for condition in rule.conditions])


def _are_up_to(counts: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether there is a count for each decision, of some of its rows."""
    return len(counts) == len(sizes) and all(0 <= n <= size for n, size in zip(counts, sizes, strict=True))


def _are_of_one_kind(conditions: Sequence[Condition]) -> bool:
    """Whether the conditions on each column compare it by size, as numbers or one kind of times, or by equality."""
    kinds_of: dict[str, set[str | None]] = {}
    for condition in conditions:
        if condition.is_ordered:
            kinds_of.setdefault(condition.column, set()).add(condition.kind_of_time)
    return all(len(kinds - {None}) < 2 for kinds in kinds_of.values()) and all(
        condition.is_ordered or condition.value is None or condition.column not in kinds_of for condition in conditions
    )


def _fits(rule: Rule, rules: Rules) -> bool:
    """Whether a rule can be one of these: its columns, its decision, and numbers that follow from its counts."""
    if rule.decision not in rules.decisions or not _are_up_to(rule.counts, rules.class_sizes):
        return False
    if not all(condition.column in rules.attributes and condition.is_valid for condition in rule.conditions):
        return False
    if len(rule.evidence) != len(rules.decisions) or any(abs(units) > _MOST_EVIDENCE for units in rule.evidence):
        return False
    decision = rules.decisions.index(rule.decision)
    right = make_rule(
        rule.conditions, decision, rule.counts, rule.p_value, rule.evidence, rules.decisions, rules.class_sizes
    )
    return rule == right
