"""Who repairs the bug from a pack: a script that tries small changes, or a policy."""
