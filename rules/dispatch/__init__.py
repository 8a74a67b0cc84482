"""Starts runs for events: matches events to action_rules, admits runs, wakes runs that wait for events."""
