"""From a row of a dataset to what trains of it.

    dataset.load_rows       one split of a dataset folder
      │  rows: messages, tools, and perhaps steps and sampled tokens, checked one by one
    samples.samples         finds the turns that were mistakes; cuts what is too long into windows, or into decisions
      │  messages, the turns that do not train, sampled tokens
    render.Renderer         the chat template makes tokens of it, and marks which of them train
      │  input_ids and labels
    prepare.prepare         writes them to a file for the trainer, and reports what is too long or trains nothing

What becomes of a conversation (only `trained` tokens have labels):

    system      You look for the cause of failing tests.            read
    user        test_total fails.                                   read
    assistant   <tool_call>{"name": "eval"}</tool_call><|im_end|>   trained
    tool        1 failed                                            read
    assistant   <tool_call>{"name": "vieew"}</tool_call><|im_end|>  masked: there is no such tool
    ...

`sft` trains on what `prepare` makes; `dpo` renders the two decisions of each pair through `samples`.
"""
