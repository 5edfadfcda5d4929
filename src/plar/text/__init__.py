"""Text files straight to codes: headers, dialect, arff → chunks → tokens → rows → reader."""
