"""The console: the pages of a running instance for people, served by `tocsin run api`.

Guarantees:

- Each page and each act needs an operation of the policy, and shows or changes only what belongs to owners
  for which the caller has it. It calls the functions of the HTTP API, so the words, the audit and the
  refusals are the same as there and on the command line.
- Every page works without a script. Acts are forms that answer with a redirect; scripts add live updates,
  shortcuts and pictures that can be explored.
- No page has an inline script or style, and the content security policy forbids them. Text of owners,
  notes, labels and payloads is escaped.
- A page costs at most 30 statements and counts at most 10,000 rows. A hidden tab costs nothing: it closes
  its feed, and reads what it missed when it is shown again.

`page.py` is what a route does around a page, `render.py` how it is written. `pages/` has one module per
screen, `pictures/` the geometry of the drawings, and `static/` what browsers load.

On failure: an error becomes a page with the message and the remedy of the command line.
"""
