"""Who may do what: groups in groups, grants and denials."""
