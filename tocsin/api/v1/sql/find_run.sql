-- Whether a run belongs to some owners. Locks nothing. Index: action's key.
select a.owner from tocsin.action a where a.id = %(id)s and tocsin.owner_matches(a.owner, %(owners)s)
