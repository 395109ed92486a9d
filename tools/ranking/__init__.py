"""Which function holds the bug: what tests run, the signals of each function, and the model that weighs them."""
