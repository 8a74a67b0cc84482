-- Chain the rows of the audit that were committed since the last call.
select tocsin.seal_audit()
