"""Makes bugs without a language model: mutates a clean project and keeps what its own tests detect."""
