"""The languages inside documents: CEL conditions (`cel`) and Jinja texts (`templates`).

Guarantee: both are compiled when a document is loaded, see only the values that they are given, and
end within bounded time and memory. `documents.load` and the engine compile conditions, and the steps
of actions compile texts.
"""
