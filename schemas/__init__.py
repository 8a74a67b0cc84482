"""Everything that crosses a process boundary: documents of authors, events and steps on the stream, subjects.

Guarantee: what these models refuse never reaches a table or a stream, and their JSON Schemas are published.
"""
