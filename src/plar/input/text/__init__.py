"""Text files straight to codes: headers → chunks → tokens → rows → reader."""
