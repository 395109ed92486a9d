import math

import pytest

from exprcalc import SyntaxFault, calculate
from exprcalc.lexer import tokenize
from exprcalc.parser import Parser


def check(expected):
    assert {text: calculate(text) for text in expected} == expected


def test_sums_and_products():
    check({"9 - 2 + 1": 8, "8 % 5 / 2": 1.5, "12 / 4 * 3": 9, "7 - 9 % 4": 6})
    check({"1 + 2 * 3": 7, "10 - 4 - 3": 3, "12 / 4 / 3": 1, "7 % 4 * 2": 6, "2 * 3 + 4": 10, "1.5 + .5": 2})


def test_powers_go_from_right_to_left():
    check({"2 ^ 3 ^ 2": 512, "2 * 3 ^ 2": 18, "(2 ^ 3) ^ 2": 64})


def test_signs():
    check({"-2 ^ 2": -4, "2 ^ -1": 0.5, "3 - -2": 5, "-3 * 2": -6, "-3 + 5": 2, "--4": 4, "2 * (-3)": -6})


def test_parentheses():
    check({"(1 + 2) * 3": 9, "2 * (3 + (4 - 1))": 12, "((5))": 5})


def test_subtraction_after_parentheses():
    check({"(1 + 2) - 3": 0, "(8) - (2)": 6, "max(7, 2) - 3": 4, "(9 - 2) - (1 + 1) - 1": 4})


def test_side_by_side_is_a_product():
    assert calculate("2x", x=4) == 8
    assert calculate("2(x + 1)(x - 1)", x=3) == 16
    assert calculate("x (4)", x=3) == 12
    assert calculate("2x^2", x=3) == 18
    assert calculate("1 / 2x", x=4) == 2


def test_names_and_constants():
    assert calculate("a * b + a", a=2, b=5) == 12
    assert calculate("2 * pi") == 2 * math.pi
    assert calculate("e", e=1) == 1
    with pytest.raises(NameError, match="unknown name: y"):
        calculate("y + 1", x=1)


def test_functions():
    check({"max(1, 5, 3)": 5, "min(4, 2 ^ 3)": 4, "abs(2 - 5)": 3, "sqrt(16) / 2": 2})
    with pytest.raises(NameError, match="unknown function: f"):
        calculate("f(1)")


def test_tokens():
    assert [token.kind for token in tokenize("-x * 3,")] == ["sign", "name", "operator", "number", "comma", "end"]
    assert [token.position for token in tokenize("ab + 1")] == [0, 3, 5, 6]


def test_tree():
    assert Parser("-a + b(1)").parse() == ("+", ("neg", ("name", "a")), ("call", "b", [("number", 1.0)]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 +", "expected a value at 3"),
        ("(1 + 2", "expected close at 6"),
        ("1)", "expected end at 1"),
        ("2 ? 3", "unexpected '\\?' at 2"),
        ("max(1,)", "expected a value at 6"),
        ("", "expected a value at 0"),
    ],
    ids=["no-operand", "not-closed", "not-opened", "stranger", "empty-argument", "empty"],
)
def test_faults_name_their_place(text, message):
    with pytest.raises(SyntaxFault, match=message):
        calculate(text)
