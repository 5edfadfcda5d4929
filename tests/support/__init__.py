"""What several test files share: the oracle, strategies, tables, the real datasets, the environment."""
