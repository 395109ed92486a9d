"""What becomes of finished episodes: filters, checks, datasets, other formats."""
