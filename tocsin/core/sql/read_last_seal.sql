-- The position of the last link of the chain of the audit; 0 if there is none.
select coalesce(max(position), 0) from tocsin.audit_seal
