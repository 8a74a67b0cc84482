-- Generic plans: planning for each batch would cost a third of the sustains per second.
set plan_cache_mode = force_generic_plan
