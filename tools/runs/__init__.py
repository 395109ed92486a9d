"""How programs are run in the sandbox, tests above all, and how what they leave behind is read."""
