"""Running programs: what a project's files and test runners are, the test server, and small programs of our own."""
