"""What the verifier needs inside its sandbox."""
