"""What the functions return: reducts, lists of reducts, proofs; their plots, pages and JSON."""
