"""Commands over HTTP: what a command does with the database, it does with the API if TOCSIN_URL is set.

Guarantees: a command prints the same, and ends with the same exit code, as with the database. The author of a
change is the name of the token (TOCSIN_TOKEN); `--created-by` has no effect. A command that needs the servers
themselves is refused with the reason.

`over_http` marks the function of a command and names the one that does it over HTTP, with the same arguments
and the same result. A module here has those of one subject.
"""
