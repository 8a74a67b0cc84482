"""Retention: what is old is dropped, and what hung on it removed, by the clock that leads, once an hour.

Guarantee: nothing is dropped that is younger than its age, that the stream has not carried, that a worker has not
read, or that an action began with which is under way or can be tried again. The newest events of each rule are kept
aside first, so a rule that rarely speaks does not lose its history, and does not keep a million other rows either. A
partition is dropped whole: the horizon of the log is one number, raised before the first table goes. Rows elsewhere
that belong to what is gone follow (`rows`).

Why detached first, concurrently and with a short `lock_timeout`: an ordinary drop waits for every reader while
every writer waits for it. On failure: whatever was done is done, and the next run goes on from there.
"""
