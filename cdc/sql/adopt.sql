-- Let the log continue after the stream. Takes the lock of the log; returns how many records were
-- moved and by how much; TS005 if there is nothing to adopt any more.
select tocsin.adopt(%(first)s - 1, %(last)s, %(reason)s, %(who)s), %(last)s - %(first)s + 1
