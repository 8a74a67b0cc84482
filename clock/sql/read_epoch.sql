-- The epoch to supersede. tocsin.take_over rejects it if it has changed meanwhile.
select epoch from tocsin.log_head
