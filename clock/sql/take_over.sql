-- Raise the epoch; null means that another candidate was quicker. Ends the former leader's session.
select tocsin.take_over(%(epoch)s, %(holder)s)
