"""Rolling out policies, and what is kept of their episodes: storage, filters, exports, converters."""
