-- The next statement takes the snapshot.
begin isolation level repeatable read
