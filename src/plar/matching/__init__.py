"""Which rows of a table meet the conditions of rules."""
