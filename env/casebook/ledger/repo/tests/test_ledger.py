from decimal import Decimal

import pytest

from ledger.book import InsufficientFunds, Ledger
from ledger.money import Money, exponent
from ledger.rates import RateTable


@pytest.fixture
def rates():
    return RateTable("EUR", {"USD": "1.25", "JPY": "160", "KWD": "0.4"})


@pytest.fixture
def book(rates):
    ledger = Ledger(rates, fee_percent=1)
    ledger.open("main", "EUR")
    ledger.open("travel", "JPY", overdraft=500)
    ledger.open("shop", "USD")
    ledger.deposit("main", Money.parse("100.00", "EUR"))
    return ledger


def balances(ledger):
    return {name: str(account.balance()) for name, account in ledger._accounts.items()}


@pytest.mark.parametrize(
    ("text", "currency", "minor"),
    [("12.50", "EUR", 1250), ("0.005", "EUR", 0), ("0.015", "EUR", 2), ("7", "JPY", 7), ("1.5", "KWD", 1500)],
)
def test_parse_rounds_half_to_even(text, currency, minor):
    assert Money.parse(text, currency) == Money(minor, currency)


def test_decimal_and_text():
    assert Money(1250, "EUR").to_decimal() == Decimal("12.50")
    assert str(Money(-5, "EUR")) == "-0.05 EUR"
    assert str(Money(7, "JPY")) == "7 JPY"
    assert exponent("KWD") == 3


def test_unknown_currency():
    with pytest.raises(ValueError, match="unknown currency: XXX"):
        Money.parse("1", "XXX")


def test_adding_needs_one_currency():
    assert Money(2, "EUR").plus(Money(3, "EUR")) == Money(5, "EUR")
    with pytest.raises(ValueError, match="cannot add USD to EUR"):
        Money(1, "EUR").plus(Money(1, "USD"))


def test_rates_go_through_the_base(rates):
    assert rates.rate("EUR", "USD") == Decimal("1.25")
    assert rates.rate("USD", "EUR") == Decimal("0.8")
    assert rates.rate("USD", "JPY") == Decimal("128")
    with pytest.raises(ValueError, match="no rate for GBP"):
        rates.rate("EUR", "GBP")


def test_convert_between_two_decimals(rates):
    assert rates.convert(Money.parse("10.00", "EUR"), "USD") == Money(1250, "USD")
    assert rates.convert(Money(999, "EUR"), "EUR") == Money(999, "EUR")


def test_deposit_in_the_currency_of_the_account(book):
    book.deposit("main", Money.parse("5.00", "USD"))
    assert balances(book)["main"] == "104.00 EUR"


def test_transfer_within_one_currency_is_free(book):
    book.open("savings", "EUR")
    assert book.transfer("main", "savings", Money(2500, "EUR")) == Money(2500, "EUR")
    assert balances(book)["main"] == "75.00 EUR"
    assert balances(book)["savings"] == "25.00 EUR"


def test_transfer_between_currencies_costs_a_fee(book):
    assert book.transfer("main", "shop", Money.parse("25.00", "USD")) == Money(2500, "USD")
    assert balances(book) == {"main": "79.80 EUR", "travel": "0 JPY", "shop": "25.00 USD"}


def test_transfer_of_a_small_amount_to_yen(book):
    book.transfer("main", "travel", Money.parse("0.99", "EUR"))
    assert balances(book)["travel"] == "158 JPY"


def test_overdraft_is_a_limit(book):
    book.transfer("travel", "travel", Money(500, "JPY"))
    book.transfer("main", "main", Money(10000, "EUR"))
    with pytest.raises(InsufficientFunds):
        book.transfer("travel", "main", Money(496, "JPY"))
    with pytest.raises(InsufficientFunds):
        book.transfer("main", "main", Money(10001, "EUR"))
    assert balances(book)["travel"] == "0 JPY"


def test_no_overdraft_and_no_fee_by_default(rates):
    ledger = Ledger(rates)
    ledger.open("a", "EUR")
    ledger.open("b", "USD")
    ledger.deposit("a", Money(100, "EUR"))
    with pytest.raises(InsufficientFunds):
        ledger.transfer("a", "b", Money(101, "EUR"))
    ledger.transfer("a", "b", Money(100, "EUR"))
    assert balances(ledger) == {"a": "0.00 EUR", "b": "1.25 USD"}


def test_net_worth(book):
    book.deposit("travel", Money(1600, "JPY"))
    book.deposit("shop", Money(1000, "USD"))
    assert book.net_worth("EUR") == Money(11800, "EUR")
    assert book.net_worth("USD") == Money(14750, "USD")


def test_account_names_are_unique(book):
    with pytest.raises(ValueError, match="account exists: main"):
        book.open("main", "USD")
