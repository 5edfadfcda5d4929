"""A call in progress: it opens the table, sets limits, reports progress, and warns."""
