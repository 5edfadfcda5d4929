"""Play every game of tic-tac-toe and write the distinct final boards as a decision table.

The 958 boards are those of the UCI dataset "Tic-Tac-Toe Endgame", in its order: the boards that x has won,
those that o has won, the draws; within each by x before o before blank, square by square.

Run ``python examples/make_tic_tac_toe.py`` to write ``tic_tac_toe.csv`` beside this script, or give another
path.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

HEADER = (
    *(f"{row}_{column}" for row in ("top", "middle", "bottom") for column in ("left", "middle", "right")),
    "x_wins",
)
LINES = (
    *((3 * row, 3 * row + 1, 3 * row + 2) for row in range(3)),
    *((column, column + 3, column + 6) for column in range(3)),
    (0, 4, 8),
    (2, 4, 6),
)
BLANK = "b"


def winner(board: str) -> str | None:
    """Return who owns a whole line, if anyone."""
    for first, second, third in LINES:
        if board[first] != BLANK and board[first] == board[second] == board[third]:
            return board[first]
    return None


def final_boards() -> set[str]:
    """Return the boards on which a game can end, x having begun."""
    final, now = set(), {BLANK * 9}
    for move in range(10):
        ended = {board for board in now if move == 9 or winner(board)}
        final |= ended
        player = "xo"[move % 2]
        now = {
            board[:square] + player + board[square + 1 :]
            for board in now - ended
            for square in range(9)
            if board[square] == BLANK
        }
    return final


def rows() -> list[tuple[str, ...]]:
    """Return the table's rows: nine squares and whether x has won."""

    def place(board: str) -> tuple[int, list[int]]:
        return ("x", "o", None).index(winner(board)), ["xob".index(square) for square in board]

    return [(*board, "positive" if winner(board) == "x" else "negative") for board in sorted(final_boards(), key=place)]


def main(path: Path) -> None:
    """Write the table to `path`."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(rows())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("tic_tac_toe.csv"))
