-- Whether any version of a calc_rule exists; asked several times a second. Index: the key of
-- rule_version.
select exists (select from tocsin.rule_version where kind = 'calc_rule')
