"""The engine of this machine: kernels in threads."""

from __future__ import annotations

from plar.engines.local.engine import LocalEngine

__all__ = ["LocalEngine"]
