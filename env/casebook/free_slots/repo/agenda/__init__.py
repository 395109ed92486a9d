"""Calendars, free time, and meetings across time zones."""
