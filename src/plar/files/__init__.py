"""Files: find.py finds and checks those to read, write.py replaces those to write."""
