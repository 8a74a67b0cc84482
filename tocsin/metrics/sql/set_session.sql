-- Reading metrics never keeps the server busy for long.
set statement_timeout = '2s'
