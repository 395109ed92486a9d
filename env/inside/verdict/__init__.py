"""Rewrites tests for a verdict: twice, so that each test is true in one variant of its file and false in the other.

`variants` is the program. `definitions` finds the functions of the tests, and `falsify` what can be made false in them.
Code that repairs the bug passes the true test and fails the false one; code that only makes tests pass, passes both.
"""
