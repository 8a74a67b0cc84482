-- The role of the session, for the audit.
select current_user::text
