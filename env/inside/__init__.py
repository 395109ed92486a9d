"""What runs inside a sandbox: the warden and its parts.

Standard library only, Python 3.6 to 3.14, one thread, no sleeping and no polling. The host sends these sources over
the warden's terminal (`gumshoe.env.sandboxes.bootstrap`), so nothing has to be installed in the sandbox.
"""
