-- Let the log continue after the stream. Takes the lock of the log; returns how many records were
-- moved; TS005 if there is nothing to adopt any more.
select tocsin.adopt(%(agreed_until)s, %(stream_last)s, %(reason)s, %(who)s)
