"""Rules as a query: it adds up the evidence of the rules that match a row, and chooses the decision that has most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plar.errors import unknown_name
from plar.matching.condition import Condition, ConditionValue

if TYPE_CHECKING:
    from plar.results.rules import Rules

#: terms of a sum in one pair of parentheses: databases limit how deep expressions are
_TERMS: Final = 100
_SCORE: Final = "score_"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How names and texts are quoted.

    Parameters
    ----------
    name_quote : str
    escapes : tuple of (str, str)
        What stands for other characters in a text, in this order.
    barrier : str
        What keeps a database from computing a score again wherever it is compared.
    """

    name_quote: str
    escapes: tuple[tuple[str, str], ...]
    barrier: str = ""

    def name(self, name: str) -> str:
        """A quoted name."""
        doubled = name.replace(self.name_quote, 2 * self.name_quote)
        return f"{self.name_quote}{doubled}{self.name_quote}"

    def literal(self, value: ConditionValue) -> str:
        """A value."""
        if value is None:
            return "NULL"
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if not isinstance(value, str):
            return repr(value)
        for characters, escaped in self.escapes:
            value = value.replace(characters, escaped)
        return f"'{value}'"

    def decision(self, value: ConditionValue) -> str:
        """A value to return: with an exponent a number is a double, and no decimal."""
        text = self.literal(value)
        return f"{text}e0" if isinstance(value, float) and "e" not in text else text


_DOUBLED: Final = (("'", "''"),)
DIALECTS: Final = {
    "ansi": Dialect('"', _DOUBLED),
    "sqlite": Dialect('"', _DOUBLED, barrier=f" LIMIT {(1 << 63) - 1} OFFSET 0"),
    # Spark would replace ${name} by a setting
    "spark": Dialect("`", (("\\", "\\\\"), ("'", "\\'"), ("${", "$\\{"))),
}


def query(rules: Rules, table: str, dialect: str) -> str:
    """Write the query; see `Rules.to_sql`."""
    if dialect not in DIALECTS:
        raise unknown_name("dialect", dialect, DIALECTS)
    quoting = DIALECTS[dialect]
    taken = {*rules.attributes, *rules.decision, *rules.left_out, str(rules.settings.get("weights"))}
    scores = [quoting.name(_free(f"{_SCORE}{number}", taken)) for number in range(len(rules.decisions))]
    sums = [f"    {_score(rules, number, quoting)} AS {score}" for number, score in enumerate(scores)]
    lines = [
        "SELECT rows_with_scores.*,",
        *_choice(rules.decisions, scores, quoting),
        f"    AS {quoting.name(_free('prediction', taken))}",
        "FROM (",
        f"  SELECT {quoting.name(table)}.*,",
        ",\n".join(sums),
        f"  FROM {quoting.name(table)}{quoting.barrier}",
        ") AS rows_with_scores",
    ]
    return "\n".join(lines)


def _free(name: str, taken: Iterable[str]) -> str:
    """A name that no column has, also in databases that do not tell cases apart."""
    names = {other.lower() for other in taken}
    while name in names:
        name += "_"
    return name


def _choice(decisions: Sequence[ConditionValue], scores: Sequence[str], dialect: Dialect) -> list[str]:
    """The decision of the largest score, of equals the first."""
    if len(decisions) == 1:
        return [f"  {dialect.decision(decisions[0])}"]
    lines = ["  CASE"]
    for number, decision in enumerate(decisions[:-1]):
        later = " AND ".join(f"{scores[number]} >= {score}" for score in scores[number + 1 :])
        lines.append(f"    WHEN {later} THEN {dialect.decision(decision)}")
    return [*lines, f"    ELSE {dialect.decision(decisions[-1])}", "  END"]


def _score(rules: Rules, decision: int, dialect: Dialect) -> str:
    """The sum of the prior of a decision and of the evidence of every rule that matches."""
    terms = [str(rules.prior[decision])]
    for rule in rules:
        met = " AND ".join(_condition(condition, dialect) for condition in rule.conditions) or "1 = 1"
        terms.append(f"CASE WHEN {met} THEN {rule.evidence[decision]} ELSE 0 END")
    parts = [" +\n      ".join(terms[begin : begin + _TERMS]) for begin in range(0, len(terms), _TERMS)]
    return " +\n      ".join(f"({part})" for part in parts)


def _condition(condition: Condition, dialect: Dialect) -> str:
    name = dialect.name(condition.column)
    if condition.is_presence:
        return f"{name} IS NOT NULL"
    if condition.value is None:
        return f"{name} IS NULL"
    return f"{name} {condition.operator} {dialect.literal(condition.value)}"
