// Written by generate.py from docs/openapi.json. Do not edit.

export type ActiveTimesView = { facts: Record<string, unknown>; sentence: string };

export type AlarmChange = { alarm: AlarmView; changed: boolean; seq: number | null };

export type AlarmExplanationView = { facts: Record<string, unknown>; history: Array<string>; sentence: string };

export type AlarmView = { acknowledged_at: string | null; acknowledged_by: string | null; acknowledged_note: string | null; correlation_id: string; id: string; instance: string; level: number; opened_at: string | null; owner: string; payload: Record<string, unknown>; resolved_at: string | null; resolved_reason: string | null; rule: string; severity: string; since: string; snoozed_by: string | null; snoozed_until: string | null; source_event_id?: string | null; state: "pending" | "open" | "resolved"; suppressed_because?: string | null; suppressed_by: string | null };

export type AppliedFiles = { files: Array<RuleFile>; large?: boolean; prune?: boolean };

export type AttemptView = { attempt: number; changed_at: string; due_at: string; kind: string; name: string; result: Record<string, unknown>; state: string; step: number; took_ms: number | null };

export type AuditView = { at: string; claimed: string | null; id: number; kind: string; name: string; new: unknown; old: unknown; owner: string; verb: string; via: string; who: string };

export type CalendarView = { definition: Record<string, unknown>; name: string };

export type CalendarYear = { calendar: string; days: Array<string>; days_of_year: number; year: number };

export type ChainView = { checked: number; hash: string; position: number; problems: Array<string>; unsealed: number };

export type ChannelTestRequest = { transition?: string };

export type ChannelTestResult = { channel: string; enabled: boolean; state: string; text: string };

export type ChannelView = { enabled: boolean; name: string; send_resolved: boolean; target: string; type: string };

export type CheckInRequest = { duration_s?: number | null; exit_code?: number | null; key?: string | null; log?: string; owner?: string | null; run?: string; status?: "start" | "success" | "fail" };

export type CheckInView = { arrived_at: string; labels: Record<string, unknown>; ts: string; value: unknown };

export type CheckedIn = { heartbeat: string; owner: string; run: string; status: string };

export type CompletionView = { detail: string; kind: string; label: string };

export type Completions = { completions: Array<CompletionView> };

export type DatapointRequest = { key: string; labels?: Record<string, string> | null; owner: string; ts?: string | null; value: number | boolean | string };

export type DatapointsRequest = { datapoints: Array<DatapointRequest> };

export type DatapointsSent = { sent: number };

export type DeadLetterRetryRequest = { expected?: number | null; kind?: "datapoint" | "event" | "record" | "report" | "request" | "step" | null; preview?: boolean; reason?: string | null; seqs?: Array<number>; since?: string | null };

export type DeadLetterView = { at: string; body: string; kind: string; reason: string; seq: number; subject: string };

export type DeadLettersRetried = { kept: Array<Record<string, unknown>>; matches: number; put_back: Array<Record<string, unknown>> };

export type EventSent = { id: string };

export type EventView = { action: string; alarm_id: string | null; correlation_id: string; epoch: number | null; fire_at: string | null; id: string; level: number | null; origin: string; owner: string; payload: Record<string, unknown>; recorded_at: string; rule: string; schedule: string; seq: number; severity: string | null; source_event_id: string | null; ts: string; type: string };

export type FindingView = { remedy: string; state: "ok" | "info" | "red"; subject: string; text: string };

export type Findings = { findings: Array<FindingView>; is_healthy: boolean };

export type FireView = { at: string; fire_at: string; note: string; owner: string; schedule: string; tz: string };

export type HeartbeatView = { alarm_id: string | null; due_at: string | null; excused_at: string | null; expected_at: string | null; last_at: string | null; last_duration_s: number | null; last_status: string; last_success_at: string | null; late_by_s: number | null; missed: number; name: string; owner: string; running: number; status: string; title: string; tz: string };

export type Heartbeats = { items: Array<HeartbeatView>; now: string };

export type JsonValue = unknown;

export type LastResult = { attempts: number; ended_at: string | null; error: string | null; id: string; started_at: string; state: string; took_ms: number | null };

export type LoginCreated = { name: string; path: string };

export type LoginRequest = { grants: Array<string>; name: string };

export type ManyChanged = { changed: Array<OneChanged>; failed: Array<OneFailed>; matches: number; preview: Array<AlarmView> };

export type ManySnoozed = { expected?: number | null; for?: string | null; ids?: Array<string>; preview?: boolean; until?: string | null; where?: string | null };

export type ManyWithNote = { expected?: number | null; ids?: Array<string>; note?: string; preview?: boolean; where?: string | null };

export type MeView = { credential: string; expires_at: string | null; grants: Array<string>; name: string; operations: Array<string> };

export type MoveRequest = { at: string; tz?: string };

export type NewEventRequest = { correlation_id?: string | null; key?: string | null; owner?: string; payload?: Record<string, JsonValue>; severity?: string | null; ts?: string | null; type: string };

export type NewSchedule = { action?: string | null; at?: string | number | null; catch_up?: string; cron?: string | null; description?: string | null; dst_fold?: string; dst_gap?: string; dtstart?: string | null; ends_at?: string | null; every?: string | null; grace?: string | null; max_catch_up?: number; name: string; owner?: string; payload?: Record<string, JsonValue>; retry?: Record<string, JsonValue> | null; rrule?: string | null; runbook_url?: string | null; spread?: string | null; starts_at?: string | null; title?: string | null; type?: string; tz?: string; window?: string | null };

export type NoteRequest = { note?: string };

export type NotificationView = { alarms: number; channel: string | null; delivered_at: string | null; ended_at: string | null; error: string; failing_since: string | null; failures: number; fallback_messages: number; held_by: Array<string> | null; id: string; messages: number; next_at: string | null; owner: string; route: string; started_at: string; state: string };

export type OneChanged = { changed: boolean; id: string; seq: number | null };

export type OneFailed = { detail: string; id: string };

export type Page_AlarmView_ = { items: Array<AlarmView>; next_cursor?: string | null };

export type Page_AuditView_ = { items: Array<AuditView>; next_cursor?: string | null };

export type Page_CalendarView_ = { items: Array<CalendarView>; next_cursor?: string | null };

export type Page_ChannelView_ = { items: Array<ChannelView>; next_cursor?: string | null };

export type Page_CheckInView_ = { items: Array<CheckInView>; next_cursor?: string | null };

export type Page_DeadLetterView_ = { items: Array<DeadLetterView>; next_cursor?: string | null };

export type Page_EventView_ = { items: Array<EventView>; next_cursor?: string | null };

export type Page_NotificationView_ = { items: Array<NotificationView>; next_cursor?: string | null };

export type Page_RuleView_ = { items: Array<RuleView>; next_cursor?: string | null };

export type Page_RunView_ = { items: Array<RunView>; next_cursor?: string | null };

export type Page_ScheduleView_ = { items: Array<ScheduleView>; next_cursor?: string | null };

export type Page_SeriesView_ = { items: Array<SeriesView>; next_cursor?: string | null };

export type Page_SessionView_ = { items: Array<SessionView>; next_cursor?: string | null };

export type Page_SilenceView_ = { items: Array<SilenceView>; next_cursor?: string | null };

export type Page_SystemView_ = { items: Array<SystemView>; next_cursor?: string | null };

export type Page_TimerView_ = { items: Array<TimerView>; next_cursor?: string | null };

export type Page_TokenView_ = { items: Array<TokenView>; next_cursor?: string | null };

export type Page_VersionView_ = { items: Array<VersionView>; next_cursor?: string | null };

export type PausedSchedule = { owner: string; schedule: string; tz: string };

export type Place = { column: number; line: number; text: string };

export type PlannedFiles = { files: Array<RuleFile>; prune?: boolean };

export type Problem = { detail: string; errors?: Array<ProblemError> | null; remedy?: string | null; status: number; title: string; type: string };

export type ProblemError = { column?: number | null; detail: string; file?: string | null; line?: number | null; parameter?: string | null; pointer?: string | null };

export type RecordsPage = { after: number; items: Array<Record<string, JsonValue>> };

export type ReplayedFiles = { files: Array<RuleFile>; since?: string; until?: string | null };

export type RuleExplanation = { condition: string; lines: Array<string>; owner: string; refers_to: Array<Record<string, unknown>>; rule: string };

export type RuleFile = { name: string; text: string };

export type RuleFiles = { files: Array<RuleFile> };

export type RuleView = { applied_at: string | null; applied_by: string | null; document: Record<string, unknown>; kind: string; name: string; seq: number; version: number; via: string | null };

export type RunCancelled = { id: string; state: "cancelled" };

export type RunCounts = { average_ms: number | null; states: Record<string, number>; total: number };

export type RunDetail = { alarm_id: string | null; correlation_id: string; ended_at: string | null; error: string | null; event_id: string; event_seq: number; id: string; lineage: Array<string>; name: string; owner: string; result: unknown; rule: string; started_at: string; state: string; steps: Array<AttemptView> };

export type RunRetried = { id: string; steps: Array<number> };

export type RunStatistics = { average_ms: number | null; rules: Record<string, RunCounts>; states: Record<string, number>; total: number };

export type RunView = { alarm_id: string | null; attempts: number; correlation_id: string; ended_at: string | null; error: string | null; event_id: string; id: string; name: string; owner: string; rule: string; started_at: string; state: string };

export type ScheduleChanged = { changed: boolean; schedule: ScheduleView };

export type ScheduleContent = { action?: string | null; at?: string | number | null; catch_up?: string; cron?: string | null; description?: string | null; dst_fold?: string; dst_gap?: string; dtstart?: string | null; ends_at?: string | null; every?: string | null; grace?: string | null; max_catch_up?: number; payload?: Record<string, JsonValue>; retry?: Record<string, JsonValue> | null; rrule?: string | null; runbook_url?: string | null; spread?: string | null; starts_at?: string | null; title?: string | null; type?: string; tz?: string; window?: string | null };

export type ScheduleExplanation = { facts: Record<string, unknown>; outcome: string; owner: string; schedule: string; sentence: string };

export type SchedulePut = { deduped: boolean; outcome: string; schedule: ScheduleView };

export type ScheduleRun = { seq: number };

export type ScheduleView = { action: string | null; attempts: number; catch_up: string; created_at: string; created_by: string; created_via: string; description: string | null; fire_at: string | null; generation: number; grace: string | null; id: string; last_error: string | null; last_fired_at: string | null; last_result: LastResult | null; max_catch_up: number; name: string; next_fire_at: string | null; owner: string; parked_at: string | null; payload: Record<string, unknown>; recurrence: Record<string, unknown>; retry: Record<string, unknown> | null; runbook_url: string | null; source: string; spread: string; status: string; title: string | null; type: string; updated_at: string; window: string | null };

export type SeriesExplanation = { sentence: string; series: SeriesView };

export type SeriesView = { arrived_at: string; cause: string | null; datapoint_type: string | null; deadline: string | null; first_arrived_at: string; freshness: string; key: string; labels: Record<string, string>; owner: string; stale_since: string | null; ts: string; value: unknown };

export type SessionView = { created_at: string; expires_at: string; grants: Array<string>; id: string; last_used_at: string; name: string; source: string };

export type SilenceAdded = { matches: number; seq: number | null; silence: SilenceView };

export type SilenceExpired = { id: string; seq: number };

export type SilenceRequest = { ends_at?: string | null; for?: string | null; matcher: string; preview?: boolean; reason?: string; starts_at?: string | null };

export type SilenceView = { created_at?: string | null; created_by: string; created_via?: string | null; ended_at?: string | null; ends_at: string; id: string; matcher: string; reason: string; source: string; starts_at: string };

export type SnoozeRequest = { for?: string | null; until?: string | null };

export type SystemView = { health: string; members: number; not_ok: Array<Record<string, unknown>>; reason: string | null; since: string | null; system: string; waiting_since: string | null };

export type TestedFiles = { files: Array<RuleFile>; only?: string | null; tests?: Array<string> | null };

export type TimerRetried = { attempts: number; key: string; kind: string; last_error: string | null; ref: string };

export type TimerRetryRequest = { key?: string; kind: "schedule-tick" | "for-sustain" | "runbook-wait" | "watchdog"; ref: string };

export type TimerView = { attempts: number; cause: string | null; fire_at: string; generation: number; key: string; kind: string; last_error: string | null; nominal_at: string; parked_at: string | null; ref: string; schedule: string | null };

export type TokenCreated = { id: string; name: string; token: string };

export type TokenRequest = { expires_at?: string | null; grants: Array<string>; name: string };

export type TokenView = { created_at: string; created_by: string; expires_at: string | null; grants: Array<string>; hint: string; id: string; last_used_at: string | null; name: string; revoked_at: string | null; revoked_by: string | null };

export type Upcoming = { fires: Array<FireView>; now: string; paused: Array<PausedSchedule> };

export type VersionView = { applied_at: string | null; applied_by: string | null; document: Record<string, unknown>; ended_at: string | null; ended_by: string | null; kind: string; name: string; seq: number; until_seq: number | null; version: number; via: string | null };

/** The body and the answer of each operation, by method and path. */
export interface Operations {
  "GET /v1/actions": { body: undefined; answer: Page_RunView_ };
  "GET /v1/actions/{id}": { body: undefined; answer: RunDetail };
  "POST /v1/actions/{id}:cancel": { body: undefined; answer: RunCancelled };
  "POST /v1/actions/{id}:retry": { body: undefined; answer: RunRetried };
  "GET /v1/alarms": { body: undefined; answer: Page_AlarmView_ };
  "GET /v1/alarms/{id}": { body: undefined; answer: AlarmView };
  "GET /v1/alarms/{id}/explanation": { body: undefined; answer: AlarmExplanationView };
  "POST /v1/alarms/{id}:ack": { body: NoteRequest; answer: AlarmChange };
  "POST /v1/alarms/{id}:resolve": { body: NoteRequest; answer: AlarmChange };
  "POST /v1/alarms/{id}:snooze": { body: SnoozeRequest; answer: AlarmChange };
  "POST /v1/alarms:ack": { body: ManyWithNote; answer: ManyChanged };
  "POST /v1/alarms:resolve": { body: ManyWithNote; answer: ManyChanged };
  "POST /v1/alarms:snooze": { body: ManySnoozed; answer: ManyChanged };
  "GET /v1/audit": { body: undefined; answer: Page_AuditView_ };
  "GET /v1/audit:verify": { body: undefined; answer: ChainView };
  "GET /v1/calendars": { body: undefined; answer: Page_CalendarView_ };
  "GET /v1/calendars/{name}": { body: undefined; answer: CalendarYear };
  "GET /v1/channels": { body: undefined; answer: Page_ChannelView_ };
  "POST /v1/channels/{name}:test": { body: ChannelTestRequest; answer: ChannelTestResult };
  "POST /v1/datapoints": { body: DatapointsRequest; answer: DatapointsSent };
  "GET /v1/dead-letters": { body: undefined; answer: Page_DeadLetterView_ };
  "POST /v1/dead-letters:retry": { body: DeadLetterRetryRequest; answer: DeadLettersRetried };
  "GET /v1/doctor": { body: undefined; answer: Findings };
  "GET /v1/events": { body: undefined; answer: Page_EventView_ };
  "POST /v1/events": { body: NewEventRequest; answer: EventSent };
  "GET /v1/heartbeats": { body: undefined; answer: Heartbeats };
  "GET /v1/heartbeats/{name}": { body: undefined; answer: Heartbeats };
  "GET /v1/heartbeats/{name}/check-ins": { body: undefined; answer: Page_CheckInView_ };
  "POST /v1/heartbeats/{name}:check-in": { body: CheckInRequest; answer: CheckedIn };
  "GET /v1/me": { body: undefined; answer: MeView };
  "GET /v1/notifications": { body: undefined; answer: Page_NotificationView_ };
  "GET /v1/records": { body: undefined; answer: RecordsPage };
  "GET /v1/rules": { body: undefined; answer: Page_RuleView_ };
  "GET /v1/rules/event_rule/{name}/explanation": { body: undefined; answer: RuleExplanation };
  "GET /v1/rules/{kind}/{name}": { body: undefined; answer: RuleView };
  "GET /v1/rules/{kind}/{name}/versions": { body: undefined; answer: Page_VersionView_ };
  "GET /v1/rules:active": { body: undefined; answer: Array<ActiveTimesView> };
  "POST /v1/rules:apply": { body: AppliedFiles; answer: Record<string, unknown> };
  "POST /v1/rules:backtest": { body: ReplayedFiles; answer: Record<string, unknown> };
  "POST /v1/rules:check": { body: RuleFiles; answer: Record<string, unknown> };
  "POST /v1/rules:complete": { body: Place; answer: Completions };
  "POST /v1/rules:plan": { body: PlannedFiles; answer: Record<string, unknown> };
  "POST /v1/rules:test": { body: TestedFiles; answer: Array<Record<string, unknown>> };
  "GET /v1/rules:version": { body: undefined; answer: Record<string, unknown> };
  "GET /v1/schedules": { body: undefined; answer: Page_ScheduleView_ };
  "POST /v1/schedules": { body: NewSchedule; answer: SchedulePut };
  "DELETE /v1/schedules/{id}": { body: undefined; answer: undefined };
  "GET /v1/schedules/{id}": { body: undefined; answer: ScheduleView };
  "PUT /v1/schedules/{id}": { body: ScheduleContent; answer: SchedulePut };
  "GET /v1/schedules/{id}/explanation": { body: undefined; answer: ScheduleExplanation };
  "POST /v1/schedules/{id}:cancel": { body: undefined; answer: ScheduleChanged };
  "POST /v1/schedules/{id}:move": { body: MoveRequest; answer: ScheduleChanged };
  "POST /v1/schedules/{id}:pause": { body: undefined; answer: ScheduleChanged };
  "POST /v1/schedules/{id}:resume": { body: undefined; answer: ScheduleChanged };
  "POST /v1/schedules/{id}:run": { body: undefined; answer: ScheduleRun };
  "GET /v1/series": { body: undefined; answer: Page_SeriesView_ };
  "GET /v1/series:explain": { body: undefined; answer: SeriesExplanation };
  "GET /v1/sessions": { body: undefined; answer: Page_SessionView_ };
  "DELETE /v1/sessions/{id}": { body: undefined; answer: undefined };
  "POST /v1/sessions:login": { body: LoginRequest; answer: LoginCreated };
  "GET /v1/silences": { body: undefined; answer: Page_SilenceView_ };
  "POST /v1/silences": { body: SilenceRequest; answer: SilenceAdded };
  "GET /v1/silences/{id}": { body: undefined; answer: SilenceView };
  "POST /v1/silences/{id}:expire": { body: undefined; answer: SilenceExpired };
  "GET /v1/stats": { body: undefined; answer: RunStatistics };
  "GET /v1/systems": { body: undefined; answer: Page_SystemView_ };
  "GET /v1/timers": { body: undefined; answer: Page_TimerView_ };
  "POST /v1/timers:retry": { body: TimerRetryRequest; answer: TimerRetried };
  "GET /v1/tokens": { body: undefined; answer: Page_TokenView_ };
  "POST /v1/tokens": { body: TokenRequest; answer: TokenCreated };
  "DELETE /v1/tokens/{token}": { body: undefined; answer: undefined };
  "GET /v1/upcoming": { body: undefined; answer: Upcoming };
}
