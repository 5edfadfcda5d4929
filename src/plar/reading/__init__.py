"""What a table may come from and go to: files (readers, arff, lines, source), frames and arrays (frames, memory)."""
