-- Raise the epoch; null means that another candidate was faster. Ends the session of the former
-- leader.
select tocsin.take_over(%(epoch)s, %(holder)s)
