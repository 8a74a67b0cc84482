"""Strategies for keys of series and for patterns over them."""

from __future__ import annotations

from hypothesis import strategies as st

parts = st.sampled_from(["a", "b", "c"])
keys = st.lists(parts, min_size=1, max_size=4).map(".".join)
patterns = st.lists(st.one_of(parts, st.sampled_from(["*", "**"])), min_size=1, max_size=4).map(".".join)
