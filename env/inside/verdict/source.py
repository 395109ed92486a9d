"""The text of a test file, and how two variants of it are written from sites where it can be changed."""

import io
import tokenize

KEPT, OTHER, WRONG = range(3)
"""What a site asks for; for example, where the test has `assert total == 7`:

| asks for | that is | text | with 7 |
|---|---|---|---|
| KEPT | what it did | `assert (not total == ((7), 77798)[0]) == ("bvdn" < "appb")` | passes |
| OTHER | to be unequal to another value | `assert (not total == ((7), 77798)[1]) == ("appb" < "bvdn")` | passes |
| WRONG | to be equal to another value | `assert (not total == ((7), 77798)[1]) == ("bvdn" < "appb")` | fails |

An assertion at the end of a test has one text that holds, for KEPT, and one that is false, for both of the others.
"""

_BETWEEN_STATEMENTS = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


class Piece:
    """A piece of a file that is replaced.

    Args:
        start, end: offsets in the text; equal for an insertion.
        kept, other, wrong: what stands there when the site asks for KEPT, OTHER and WRONG. Without a text for WRONG,
            that for OTHER; without that one, the same text whatever the site asks for.
    """

    def __init__(self, start, end, kept, other=None, wrong=None):
        other = kept if other is None else other
        self.start, self.end = start, end
        self.texts = (kept, other, other if wrong is None else wrong)


class Site:
    """A place in a file that can ask for something else: a comparison of a test, or an assertion added at its end.

    Attributes:
        pieces: in the order in which they stand.
        always_runs: whether the test cannot pass without it.
    """

    def __init__(self, pieces, always_runs=False):
        self.pieces, self.always_runs = pieces, always_runs


class SiteChange:
    """A site as it is in two variants: in one as it was, in the other false.

    Attributes:
        site: the site.
        asks_for: OTHER or WRONG, in the variant in which it is false.
        false_in: the number of that variant.
    """

    def __init__(self, site, asks_for, false_in):
        self.site, self.asks_for, self.false_in = site, asks_for, false_in


class LogicalLine:
    """A statement, or several on one line, which may go over several lines of the file.

    Attributes:
        first, last: its lines.
        end: the offset of its end; a comment comes after that.
        semicolon: whether it ends in one.
    """

    def __init__(self, first, last, end, semicolon):
        self.first, self.last, self.end, self.semicolon = first, last, end, semicolon


class SourceText:
    """The text of a file, with the offsets of what the parser has found."""

    def __init__(self, text):
        self.text = text
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._logical = {line: each for each in self._logical_lines() for line in range(each.first, each.last + 1)}

    def _logical_lines(self):
        first, last = 0, None
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type == tokenize.NEWLINE and last is not None:
                line, column = last.end
                yield LogicalLine(first, token.start[0], self._starts[line - 1] + column, last.string == ";")
                first, last = 0, None
            elif token.type not in _BETWEEN_STATEMENTS:
                first, last = first or token.start[0], token

    def at(self, line, column):
        """The offset of a place that the parser names: a line, and a column in UTF-8."""
        text = self._lines[line - 1]
        return self._starts[line - 1] + len(text.encode("utf-8")[:column].decode("utf-8", "ignore"))

    def span(self, node):
        """(start, end) of an expression; Python 3.8 and later."""
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def logical_line(self, line):
        """The `LogicalLine` that a line is in."""
        return self._logical[line]

    def indentation(self, line):
        """The white space before a line."""
        text = self._lines[line - 1]
        return text[: len(text) - len(text.lstrip())]

    def below(self, line):
        """(start, end) of the blank line after a line, or of the place for a new one."""
        end = self._starts[line] - 1
        blank = line + 1 < len(self._lines) and not self._lines[line].strip()
        return end, self._starts[line + 1] - 1 if blank else end


def write_variant(text, changes, number):
    """(the text as one variant has it, {site: its first and last line there}).

    the text is       assert add(1, 2) == 3
    changes           [SiteChange(Site([Piece(20, 21, "3", "7")]), WRONG, false_in=1)]
    number 0 gives    assert add(1, 2) == 3    and {the site: [1, 1]}
    number 1 gives    assert add(1, 2) == 7    and the same
    """
    pieces = [
        (piece, change.site, piece.texts[change.asks_for if number == change.false_in else KEPT])
        for change in changes
        for piece in change.site.pieces
    ]
    written, lines, at, line = [], {}, 0, 1
    # Pieces at the same place stand in the order of their changes.
    for piece, site, new in sorted(pieces, key=lambda each: (each[0].start, each[0].end)):
        unchanged = text[at : piece.start]
        line += unchanged.count("\n")
        first = line + len(new) - len(new.lstrip("\n"))
        span = lines.setdefault(site, [first, first])
        span[1] = line + new.rstrip("\n").count("\n")
        line += new.count("\n")
        written += [unchanged, new]
        at = piece.end
    return "".join(written) + text[at:], lines
