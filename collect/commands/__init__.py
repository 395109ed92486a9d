"""The commands of this folder, one module each."""
