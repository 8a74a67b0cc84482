-- The newest version of every document.
select kind, name, version, document from tocsin.rule_version where until_seq is null
