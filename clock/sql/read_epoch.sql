-- The epoch to supersede; tocsin.take_over refuses if it has moved on meanwhile.
select epoch from tocsin.log_head
