"""What is compared: where the pack of an arm comes from, and who solves the task with it."""
