// Package jar runs programs under glass from Go: it makes the parts of Belljar and
// joins them. Every surface (command line, MCP, HTTP) stands on it.
//
//	j, err := jar.Open(ctx, jar.WithWorkspace("."))
//	...
//	defer j.Close()
//	res, err := j.Run(ctx, &belljar.Request{Source: "print(tools.list_dir(path='.'))"})
//
// A request without a kind is a script, which may call tools; without a language it
// is Python.
//
// A Jar is cheap to open: the sandbox, the audit journal and upstream servers are
// opened when something first needs them. It needs no root and no daemon. A program
// that embeds it can offer its own Go functions as tools with [WithFunc].
//
// A belljar.toml is the command's; a program says the same with options:
// [WithWorkspace], [WithMCPConfig], [WithTools], [WithExtraTools], [WithMaxCalls],
// [WithPython], and [WithConfig] for the rest.
//
// Each run is recorded in the audit journal, by default in the user's state folder
// (see [WithState]); a run that cannot be recorded is refused.
package jar
