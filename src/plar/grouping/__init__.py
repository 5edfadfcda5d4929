"""Rows with equal values: factorizing one column, partitions of the rows by several."""
