"""What runs in sandboxes: programs of their own, sent there as source."""
