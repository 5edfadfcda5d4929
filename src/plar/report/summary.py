"""A reduct as text for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plar.errors import printable
from plar.limits import shown_seconds

if TYPE_CHECKING:
    from plar.reduct import Reduct, Step

__all__ = ["summary"]


def summary(found: Reduct) -> list[str]:
    """Write the lines that `print` shows.

    Examples
    --------
    >>> import plar
    >>> summary(plar.reduce({"a": [0, 1], "d": [0, 1]}, "d"))[1]
    '1 attributes → 1, measure SCE'
    """
    certificate = found.certificate
    facts = [f"{found.n_objects:,} objects", f"{found.n_granules:,} granules"]
    facts += ["one decision only: nothing to tell apart"] if found.n_classes == 1 else []
    facts += ["consistent" if found.consistent else "inconsistent: equal objects with different decisions"]
    end = "" if found.complete else "; stopped before the goal was met"
    lines = [
        ", ".join(facts),
        f"{len(found.conditions):,} attributes → {len(found.attributes):,}, measure {found.measure}{end}",
        "",
        f"core    {_listed(found.core)}",
        f"reduct  {_listed(found.attributes)}",
        *_steps(found.steps),
        "",
    ]
    if certificate.preserved:
        lines.append(f"Θ(D|R) = {found.theta:.6g}: these attributes tell exactly as much as all of them together.")
    else:
        lines.append(
            f"Θ(D|R) = {found.theta:.6g}: these attributes tell less than all of them together ({found.theta_all:.6g})."
        )
    if certificate.redundant:
        lines.append(f"Individually removable (use --minimal): {_listed(certificate.redundant)}.")
    elif found.attributes:
        lines.append("Minimal: without any one of them something is lost.")
    elif certificate.preserved:
        lines.append("None is needed.")
    return [*lines, f"{shown_seconds(sum(found.seconds.values()))}, engine {found.engine}"]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(printable, names)) or "(empty)"


def _steps(steps: Sequence[Step]) -> list[str]:
    if not steps:
        return []
    shown = [printable(step.attribute) for step in steps]
    width = max(9, *(len(name) for name in shown))
    head = f"{'step':>6}  {'attribute':<{width}}  {'significance':>12}  {'Θ(D|R)':>12}  {'still mixed':>12}  ties"
    lines = ["", head]
    for i, (name, step) in enumerate(zip(shown, steps, strict=True), 1):
        ties = f"  {_listed(step.ties[1:4])}{' …' if len(step.ties) > 4 else ''}" if len(step.ties) > 1 else ""
        lines.append(
            f"{i:>6}  {name:<{width}}  {step.significance:>12.6g}  {step.theta:>12.6g}  {step.active:>12,}{ties}"
        )
    return lines
