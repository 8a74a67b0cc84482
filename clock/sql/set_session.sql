-- Generic plans: a planner that sees the arrays prefers to read whole tables.
set plan_cache_mode = force_generic_plan
