"""What sandboxes take from this machine: programs, namespaces, filters and folders."""
