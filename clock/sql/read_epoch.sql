-- The current epoch, which a takeover raises. tocsin.take_over rejects the takeover if the epoch has
-- changed meanwhile.
select epoch from tocsin.log_head
