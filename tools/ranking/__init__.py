"""Which function holds the bug: what tests run, the signals of each function, and the model that weighs them.

a watched run ──> Spectrum ──┬──> rank               by one formula
                  spectrum   │
                             └──> rank_by_signals    by the model, which weighs all signals
failing tests ──> Failures ─────> candidates ──> signals_of ──> probabilities
                  ranker
"""
