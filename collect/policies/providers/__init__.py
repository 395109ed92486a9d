"""Models behind servers: the SDKs of OpenAI and Anthropic."""
