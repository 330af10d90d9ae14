// Package cases plays the folder data: small programs and requests that were
// drawn from public reports of what went wrong in engines like this one, and
// neighbours of them. It is about kinds of failure; a case shows one door of a row.
//
// Every case whose surface is "run" is played through the library (as a snippet),
// the command (`belljar run --json`, as a snippet) and MCP (as a script), as root
// and as an ordinary user, and the answers must agree. Cases with tools are scripts
// and have Go functions as tools, so they are played through the library and MCP.
//
// # One case
//
//	id, kind, title    name (that of its file), family, and what it shows
//	surface            run, cli (also on a terminal), mcp (calls of execute_code, or
//	                   a program behind `belljar mcp`)
//	lang               python
//	source             the program's lines; source_raw is the exact text instead
//	as                 "snippet" for a program that must have no bridge: not by MCP
//	files, stdin, stdin_gen, limits
//	                   what the run is given; absent limits are the engine's own, but
//	                   for a longer time
//	tools              in words, the tools of tools_test.go
//	request            for mcp: arguments, sent one by one
//	steps              several programs in order, in place of source; background:
//	                   do not wait for it
//	expect             what must come of it, see expect_test.go
//	note, precedent, checked
//	                   for readers
//
// A field or a word that the harness does not know fails the test, and so does a
// case that is listed as known to fail (known_test.go) and passes.
//
// # Placeholders
//
// In every text of a case, @@NONCE@@ is a word of this one play, @@CANARY_...@@
// names things outside the sandbox (testkit.Canary), @@HOSTNAME@@ and
// @@HOST_WORKDIR@@ are the host's name and the folder where the engine works.
package cases
