"""Import delivery lists and add up what was delivered."""
