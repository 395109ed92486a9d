"""The ledger: accounts and the entries posted to them."""

from dataclasses import dataclass, field
from typing import List

from .money import Money


class InsufficientFunds(Exception):
    """The account does not hold enough for the posting."""


@dataclass
class Account:
    """An account in one currency; `overdraft` is how far below zero it may go, in minor units."""

    name: str
    currency: str
    overdraft: int = 0
    entries: List[Money] = field(default_factory=list)

    def balance(self):
        """Return the sum of all entries."""
        total = Money(0, self.currency)
        for entry in self.entries:
            total = total.plus(entry)
        return total


class Ledger:
    """A set of accounts and the rates used between them."""

    def __init__(self, rates, fee_percent=0):
        self.rates = rates
        self.fee_percent = fee_percent
        self._accounts = {}

    def open(self, name, currency, overdraft=0):
        """Open an account; names are unique."""
        if name in self._accounts:
            raise ValueError("account exists: " + name)
        self._accounts[name] = Account(name, currency, overdraft)
        return self._accounts[name]

    def deposit(self, name, money):
        """Credit `money`, converted to the currency of the account."""
        account = self._accounts[name]
        account.entries.append(self.rates.convert(money, account.currency))

    def transfer(self, source, target, money):
        """Move `money` from one account to another and return what arrived.

        The source pays `money` in its own currency plus a fee when the currencies differ.

        Raises:
            InsufficientFunds: the source would go below its overdraft.
        """
        payer, payee = self._accounts[source], self._accounts[target]
        debit = self.rates.convert(money, payer.currency)
        credit = self.rates.convert(money, payee.currency)
        if payer.currency != payee.currency:
            debit = debit.plus(self._fee(debit))
        if payer.balance().minor - debit.minor < -payer.overdraft:
            raise InsufficientFunds(source)
        payer.entries.append(debit.negated())
        payee.entries.append(credit)
        return credit

    def net_worth(self, currency):
        """Return the sum of all balances in `currency`."""
        total = Money(0, currency)
        for account in self._accounts.values():
            total = total.plus(self.rates.convert(account.balance(), currency))
        return total

    def _fee(self, money):
        return Money.from_decimal(money.to_decimal() * self.fee_percent / 100, money.currency)
