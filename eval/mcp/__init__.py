"""The sandboxed tools on a repository, for any agent that speaks the Model Context Protocol.

    client ──> server ──> ToolSession ──┬── the tools ─────> DebugEnv in a sandbox, whose files follow the folder's
                                        └── investigate ───> an episode in a sandbox of its own, for each call

`tool_session` is what one client has: a sandbox whose files follow the folder's, and an investigation beside it.
`server` speaks the protocol, over standard input and output or over HTTP.
"""
