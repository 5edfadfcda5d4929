"""The test against chance: association of a column with the decision, and its p-value without a seed."""
