"""Tails of the hypergeometric distribution with sixty digits, for tables of any size."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
#: the second, fourth, … Bernoulli number
BERNOULLI = (
    *(Fraction(1, 6), Fraction(-1, 30), Fraction(1, 42), Fraction(-1, 30), Fraction(5, 66)),
    *(Fraction(-691, 2730), Fraction(7, 6), Fraction(-3617, 510), Fraction(43867, 798), Fraction(-174611, 330)),
)
#: from here on Stirling's series has sixty digits
FEW = 2_000


def log_factorial(n: int) -> Decimal:
    """Ln n!, by Stirling's series where n is large."""
    if n < FEW:
        return Decimal(math.factorial(n)).ln()
    x = Decimal(n)
    total = x * x.ln() - x + (2 * PI * x).ln() / 2
    for i, number in enumerate(BERNOULLI, 1):
        total += Decimal(number.numerator) / number.denominator / (2 * i * (2 * i - 1)) / x ** (2 * i - 1)
    return total


def log_choices(n: int, k: int) -> Decimal:
    """Ln of the number of ways to choose k of n."""
    return log_factorial(n) - log_factorial(k) - log_factorial(n - k)


def exact_log_tail(n_rows: int, n_hits: int, n_matched: int, n_matched_hits: int) -> Decimal:
    """Ln P(K ≥ k), summed up until nothing is added any more."""
    with localcontext() as context:
        context.prec = 60
        first = log_choices(n_hits, n_matched_hits)
        first += log_choices(n_rows - n_hits, n_matched - n_matched_hits) - log_choices(n_rows, n_matched)
        total = Decimal(1)
        term = Decimal(1)
        for k in range(n_matched_hits, min(n_hits, n_matched)):
            term *= Decimal((n_hits - k) * (n_matched - k)) / ((k + 1) * (n_rows - n_hits - n_matched + k + 1))
            total += term
            if term < total * Decimal("1e-30"):
                break
        return first + total.ln()
