-- Let the log go on behind the stream. Takes the log's lock; returns how many records were moved; TS005 if there is nothing
-- to adopt any more.
select tocsin.adopt(%(agreed_until)s, %(stream_last)s, %(reason)s, %(who)s)
