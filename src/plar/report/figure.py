"""A matplotlib figure that notebooks show by themselves."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A figure that pyplot does not know: nothing stays in memory, and Jupyter shows it without any magic."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=self.dpi)
        return file.getvalue()
