"""The warden, Gumshoe's own process inside a sandbox, and what starts and supervises programs there."""
