-- The snapshot is taken by the next statement.
begin isolation level repeatable read
