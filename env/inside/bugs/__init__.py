"""The maker of bugs: tries variants of a project against its tests."""
