"""Python source as the tools read it.

    source ──> functions, which function a line is in, and which one an agent names
       └─────> statements ──> small_changes, which `vary` tries

`source` keeps line ends and encodings as they are.
"""
