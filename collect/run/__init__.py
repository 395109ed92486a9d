"""Playing many episodes: workers, run folders, journals, clusters."""
