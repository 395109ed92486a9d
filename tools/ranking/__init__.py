"""Which function holds the bug: what tests run, the signals of each function, and the model that weighs them.

a watched run ──> Spectrum ──> candidates ──> signals_of ──> rank_by_signals ──> Suspects, likeliest first
                  spectrum     ranker         ranker         ranker
failing tests ──> Failures ────────┴──────────────┘
                  ranker
"""
