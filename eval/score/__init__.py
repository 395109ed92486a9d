"""The metrics of finished episodes, and means, intervals and tables of them."""
