-- Until the transaction ends, the catalog functions write every name with its schema.
select set_config('search_path', '', true)
