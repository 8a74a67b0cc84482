-- Who acts in this session, and the current instant.
select tocsin.principal(%(claimed)s::text), tocsin.instant()
