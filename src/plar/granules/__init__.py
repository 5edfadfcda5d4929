"""Granules: the distinct rows of a table with their counts, in memory and in files."""

from __future__ import annotations

from plar.granules.granules import Granules

__all__ = ["Granules"]
