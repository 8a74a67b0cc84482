-- Allows a longer idle time until the transaction ends: an apply computes systems and records while
-- it holds its locks, and one owner may have very many overdue checks.
set local idle_in_transaction_session_timeout = '30s'
