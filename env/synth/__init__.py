"""Makes bugs without a language model: mutates a clean project, keeps what its own tests notice."""
