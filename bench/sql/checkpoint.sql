-- Neither loop writes the pages that the filling changed.
checkpoint
