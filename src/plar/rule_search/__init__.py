"""Rules from granules: conditions on the columns, and what they say about the decision."""
