-- The roles that the session may act as: everything (the owner of the schema, the API), operator, author, reader; and
-- the owners that are granted to it.
select session_user::text, tocsin.is_trusted(), tocsin.is_member('tocsin_operator'), tocsin.is_member('tocsin_author'),
       tocsin.is_member('tocsin_reader'), tocsin.own_patterns()
