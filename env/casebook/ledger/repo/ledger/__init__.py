"""Accounts in several currencies, transfers between them, and statements."""
