-- The tz version of the clock; null on a new database. Holds the shared lock of the version until
-- the transaction ends: a clock stores another version only when no such edit is open.
select tocsin.share_tz_version()
