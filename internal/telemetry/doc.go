// Package telemetry counts runs and tool calls for /metrics, in a Prometheus
// registry of its own: nothing is registered globally, so two engines in one
// program do not meet, and nothing is made before the first thing is counted or
// asked for.
//
// The series, with their labels:
//
//	belljar_runs_total                  counter    kind, lang, status
//	belljar_run_duration_seconds        histogram  kind
//	belljar_runs_active                 gauge
//	belljar_tool_calls_total            counter    tool, outcome
//	belljar_tool_call_duration_seconds  histogram  tool
//	belljar_tool_bytes_kept_out_total   counter
//
// beside the go_ and process_ series of the client library. A tool has the name
// that the journal gives it, "ptc:<tool>".
//
// Every value of a label is a series that stays for the life of the process, so
// names must not come from a run. Callers pass names of the toolset and of the
// language registry, and "" for a name that is in neither; it is counted as
// "(unknown)". Beyond 200 names a label's further ones are counted as "(other)".
package telemetry
