"""What several parts of an evaluation need: a cache on disk, jobs in threads."""
