-- Removes the contents of the audit rows about the owner of an erasure.
select tocsin.erase_audit(%(seq)s)
