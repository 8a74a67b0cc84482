-- Neither loop pays for the pages that filling dirtied.
checkpoint
