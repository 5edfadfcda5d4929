"""The greedy search: core, steps, certificate, checkpoint; and its repetition in layers."""
