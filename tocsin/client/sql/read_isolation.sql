-- The isolation level of this transaction.
select current_setting('transaction_isolation')
