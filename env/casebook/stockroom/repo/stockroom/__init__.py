"""Stock in bins, reservations, and orders that are filled whole or not at all."""
