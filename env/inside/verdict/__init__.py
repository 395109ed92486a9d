"""Rewrites tests for a verdict: twice, so that each test is true in one variant of its file and false in the other.

Code that repairs the bug passes the true test and fails the false one; code that only makes tests pass, passes both.
The host draws a seed for each verdict, runs both variants with the patch, and judges what it sees
(`gumshoe.env.verifier`).

    variants   the program: reads a request, and writes both variants and what is known of each definition
    |- definitions   finds the functions that define the tests, by the tests' ids
    |- falsify       finds the sites of a test that can be made false
    `- source        the text of a file, and how a variant of it is written
    trees      another program: has this Python parse a file for the host, whose own may not know the syntax

A definition is a function that defines tests, or a script; several tests may share one. The test
`assert total([2, 3]) == 5`, as it may look where it is true and where it is false:

    assert (not total([2, 3]) == ((5), 77798)[0]) == ("bvdn" < "appb")
    assert len("weccsfpj") == 8

    assert (not total([2, 3]) == ((5), 77798)[1]) == ("bvdn" < "appb")
    assert len("weccsfpj") == 7

The false one asks for 77798. The assertion at its end is false, too: a result that equals everything gets that far.
Both variants have the same length and the same lines, and which one is false cannot be seen without evaluating it.
"""
