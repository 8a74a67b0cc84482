-- Systems that no document names any more, and their members; returns what they were in.
delete from tocsin.system_health h where h.system <> all (%(names)s::text[]) returning h.system, h.health
