// Package toolset is everything that a script can call: the built-in read-only
// tools on a workspace folder, the tools of upstream MCP servers, and Go
// functions of the embedding program, under one roof with one naming rule.
//
// [Open] starts nothing. Upstream servers are started together when something
// first needs them ([Set.Tools], [Set.Find] or [Set.Call] of a name that is not
// local), and started again when they have died.
//
// # Names
//
// A script calls a tool by [belljar.Tool].Name, an identifier. Local tools (built
// in and Go) keep their names. An upstream tool keeps its own with `-`, `.` and
// spaces as `_`; where that is taken, or two upstreams claim it, it becomes
// `<server>_<tool>`, for all that claim it. Once given, a name stays bound to that tool of that
// server for the life of the Set: a server that comes up later, or changes its
// list, can never take over a name that a decision has already been made about.
// Forms lists every name by which policy must know the tool. A script may also
// write an upstream tool's own name: `get-thing.3` is get_thing_3, as long as no
// other tool wants that name too.
//
// # Trust
//
// Names, descriptions, schemas and answers of upstream servers are text from
// strangers. Names that cannot be made an identifier drop the tool, with an
// error that says so; descriptions are cleaned and cut; schemas above 64 KiB are
// dropped; annotations are claims and never make a tool ReadOnly.
//
// Arguments of local tools are checked here against the schema; those of
// upstream tools are checked by their server.
package toolset
