"""What Θ compares: labels of the classes of U/C, and tables of the decisions within the classes of U/R."""
