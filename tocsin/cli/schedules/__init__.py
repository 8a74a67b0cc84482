"""Commands about schedules: `schedules`, `upcoming`, `schedule ...`, `next` and `parse-time`."""
