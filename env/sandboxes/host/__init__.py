"""What sandboxes without a daemon take from this machine: programs, namespaces, filters and folders."""
