"""What observations show, as numbered facts, and whether findings that cite them hold.

    Observation ──> FactReader ──> Fact [f12], with its probe ──> Finding of a report ──> check_findings ──> Check
                    facts          numbered_text shows it         cites 12                checks

A check is a new run of the tests, which looks where the probes say.

This sits above the tools `eval`, `suspects` and `whatif`, whose observations it reads, and below `report` and `probe`,
which check findings with it.
"""
