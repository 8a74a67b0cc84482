-- The current document of a channel. Locks nothing. Index: rule_version_current.
select document from tocsin.rule_version where kind = 'channel' and name = %(name)s and until_seq is null
