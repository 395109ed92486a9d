"""Tool calls between a model and the functions that carry them out.

    typed function ──> CallSignature ──> JSON schema, which the model reads        schema
    the model's text, or its native calls ──> ToolCall                             parsing
    ToolCall.arguments ──> CallSignature.bind ──> the function's arguments         schema

What cannot be read as a call becomes one with a `parse_error`.
"""
