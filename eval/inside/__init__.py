"""What runs in sandboxes: standalone programs, sent there as source."""
