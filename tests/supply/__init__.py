"""The supply chain: the lock files of `requirements/`, the licences and the known vulnerabilities.

Guarantees: every package that the project installs has a version and hashes in a lock file
(`lock.py`), a licence that is allowed or named (`licences.py`), and no known vulnerability where a
vulnerability service can be reached (`audit.py`).
"""
