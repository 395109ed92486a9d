"""What observations show, as facts with probes that show them again, and what comes of running these."""
