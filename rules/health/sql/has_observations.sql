-- Whether any observation is undecided; asked several times a second. Index: the key of
-- member_observation.
select exists (select from tocsin.member_observation)
