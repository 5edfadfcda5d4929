"""From any data to a decision table: text, typed files, frames, arrays and Spark, with the roles of their columns."""
