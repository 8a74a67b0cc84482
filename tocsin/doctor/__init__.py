"""The doctor: checks of an instance, each with a remedy if it is red. `tocsin doctor` and the API run them.

`checks.py` and `stream_findings.py` are pure, the others read from the servers. `examine.py` runs all of them.
Reads only.
"""
