"""Values become dictionary codes (codes, series), and codes become distinct rows (assemble)."""
