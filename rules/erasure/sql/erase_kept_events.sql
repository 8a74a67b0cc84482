-- Removes the contents of the kept events of the owner of an erasure.
select tocsin.erase_kept_events(%(seq)s)
