"""Values become dictionary codes (codes, series), codes become distinct rows (assemble) and a Parquet file (store)."""
