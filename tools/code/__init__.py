"""Python source as the tools read it: lines, functions, statements, and small changes of these."""
