"""The sandboxed tools on a repository, for any agent that speaks the Model Context Protocol."""
