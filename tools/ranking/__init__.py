"""Which function holds the bug: what tests run, the signals of each function, and the model that weighs them.

a watched run ──> Spectrum ──> candidates ──> Signals ──> rank_by_signals ──> Suspects, likeliest first
                  spectrum     signals        signals     ranker
failing tests ──> Failures ────────┴─────────────┘
                  signals
"""
