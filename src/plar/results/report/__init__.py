"""What results say to people: as text, in notebooks, and as pages."""
