-- How this transaction is isolated.
select current_setting('transaction_isolation')
