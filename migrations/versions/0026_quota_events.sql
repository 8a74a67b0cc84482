-- The event types of quotas and of forgotten owners are reserved.

create or replace function tocsin.is_reserved_type(type text) returns boolean
language sql immutable parallel safe
return type ~ '^(alarm|schedule|rules|notification|silence|maintenance|inhibit|action|pipeline|system|cdc|quota)-'
       or type in ('series-forgotten', 'log-pruned', 'log-gap-recorded', 'stream-rebuilt', 'owner-forgotten');
