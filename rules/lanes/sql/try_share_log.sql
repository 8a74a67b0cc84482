-- Prevents appends until the transaction ends. False if a session is about to commit: the caller
-- tries again later.
select tocsin.try_share_log()
