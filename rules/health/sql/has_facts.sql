-- Whether anything waits to be decided: asked several times a second. Index: member_observation's key.
select exists (select from tocsin.member_observation)
