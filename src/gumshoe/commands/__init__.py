"""The commands that belong to no other folder."""
