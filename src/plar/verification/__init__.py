"""The checker of proofs, independent of the searches that write them."""
