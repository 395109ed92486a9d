"""The text of a test file: where its pieces are, and what takes their place."""

import io
import tokenize


class Replacement:
    """A piece of a file that is replaced.

    Attributes:
        start, end: offsets in the text; equal for an insertion.
        texts: what stands there where the test holds, and where it is false.
        label: whose lines these are, or None.
    """

    def __init__(self, start, end, texts, label=None):
        self.start, self.end, self.texts, self.label = start, end, texts, label


class SourceText:
    """The text of a file, with the offsets of what the parser has found.

    Attributes:
        helper: the name of a function that is to be put at the end of the file, once it is needed.
    """

    def __init__(self, text):
        self.text = text
        self.helper = None
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._logical = {}
        for first, last, end, semicolon in _logical_lines(text):
            whole = (last, self._starts[end[0] - 1] + end[1], semicolon)
            self._logical.update((line, whole) for line in range(first, last + 1))

    def at(self, line, column):
        """The offset of a place that the parser names: a line, and a column in UTF-8."""
        text = self._lines[line - 1]
        return self._starts[line - 1] + len(text.encode("utf-8")[:column].decode("utf-8", "ignore"))

    def span(self, node):
        """(start, end) of an expression; Python 3.8 and later."""
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def logical_line(self, line):
        """(last line, offset of the end, whether a semicolon is there) of the logical line with a line."""
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


def _logical_lines(text):
    """(first line, last line, (line, column) of the end, whether a semicolon is there) of each logical line."""
    first, last = 0, None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE and last is not None:
            yield first, token.start[0], last.end, last.string == ";"
            first, last = 0, None
        elif token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            first, last = first or token.start[0], token
