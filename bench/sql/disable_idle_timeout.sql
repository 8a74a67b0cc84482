-- For a session that is idle in a transaction on purpose.
set idle_in_transaction_session_timeout = 0
