"""The commands that belong to no other folder, in modules by subject."""
