"""Pictures: pure functions from data to SVG, for the console, its printed pages and the backtest report.

Guarantees: a picture draws nothing outside of its box, has a bounded number of elements for any amount of
data, and escapes every text. It has no inline style and no script: `pictures.css` gives the classes their
colours, for light and dark. Colour is never the only difference: height, outline or a sign says the same.
Each picture has a title, a description, and its data as a table (`figure.py`).

Why on the server: the same drawing works without a script, on paper and in a report that is one file.
"""
