"""Training on exported datasets, with TRL: supervised, by preferences, and on live episodes."""
