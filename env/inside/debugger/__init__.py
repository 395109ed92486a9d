"""The debugger: runs a program, stops where it is told to, and shows what is there."""
