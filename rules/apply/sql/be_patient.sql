-- The systems and the records of an apply are put together while it holds its locks, and one owner may have very many silences; the
-- longest that this may take. Until the transaction ends.
set local idle_in_transaction_session_timeout = '30s'
