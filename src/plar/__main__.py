"""Run the command line with ``python -m plar``."""

from plar.cli import main

main()
