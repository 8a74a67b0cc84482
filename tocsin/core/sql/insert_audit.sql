-- Record a change for `tocsin audit`: who made it, via which interface, the state before and after.
insert into tocsin.audit (at, who, via, verb, kind, owner, name, old, new)
values (%(at)s, %(who)s, %(via)s, %(verb)s, %(kind)s, %(owner)s, %(name)s, %(old)s, %(new)s)
