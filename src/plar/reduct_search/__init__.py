"""The smallest reduct and all reducts: clauses, hitting sets, proofs."""
