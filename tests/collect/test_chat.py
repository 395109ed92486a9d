import json

from gumshoe.collect.episode.conversation import as_text_chat
from gumshoe.records import Message, ToolCall, ToolSchema


def test_text_chat_has_the_layout_of_hermes_templates() -> None:
    tool = ToolSchema(name="eval", description="Run.", parameters={"type": "object"})
    call = ToolCall(id="1", name="eval")
    chat = as_text_chat(
        [
            Message(role="system", content="S"),
            Message(role="user", content="U"),
            Message(role="assistant", content="[seek] x", tool_calls=(call, call)),
            Message(role="tool", content="one", tool_call_id="1", name="eval"),
            Message(role="tool", content="two", tool_call_id="1", name="eval"),
        ],
        [tool],
    )
    assert [message["role"] for message in chat] == ["system", "user", "assistant", "user"]
    assert chat[0]["content"].startswith("S\n\n# Tools")
    assert json.dumps(tool.as_openai()) in chat[0]["content"]
    assert chat[2]["content"].count("<tool_call>") == 2
    assert chat[3]["content"] == "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>"
