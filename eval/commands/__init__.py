"""The commands of this folder, in modules by subject."""
