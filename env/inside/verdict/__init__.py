"""Rewrites tests for a verdict: twice, so that each test is true in one variant of its file and false in the other.

`variants` is the program. `definitions` finds the functions of the tests, and `falsify` what can be made false in them;
`source` has the text of a file, for both.
Code that repairs the bug passes the true test and fails the false one; code that only makes tests pass, passes both.

The test `assert total([2, 3]) == 5`, as it may look where it is true and where it is false:

    assert (not total([2, 3]) == ((5), 77798)[0]) == ("bvdn" < "appb")
    assert len("weccsfpj") == 8

    assert (not total([2, 3]) == ((5), 77798)[1]) == ("bvdn" < "appb")
    assert len("weccsfpj") == 7

The false one asks for 77798. The assertion at its end is false, too: a result that equals everything gets that far.
"""
