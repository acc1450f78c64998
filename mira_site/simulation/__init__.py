"""A life with MIRA in fast motion, for the command `simulate_life` and its test.

Needs the scripted model of the tests and time-machine (requirements-dev.txt), so nothing that
serves people imports it.
"""
