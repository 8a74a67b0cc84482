"""Models of everything that crosses a process boundary: documents, messages and subjects.

Guarantee: data that these models reject never reaches a table or a stream. Their JSON Schemas are
published.
"""
