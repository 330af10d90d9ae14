// Package mcpserver offers runs to MCP clients: the tool execute_code, over the
// official SDK, on any of its transports.
//
// It translates and decides nothing. Arguments become a [belljar.Request], the
// [belljar.Result] becomes text for the model and structured content; the words
// are package output's. What the model wrote are the arguments and nothing else:
// the session and the fence of a call come from the request's _meta, which the
// client's program sets.
//
//	arguments  code, lang, timeout_s, files, stdin     written by the model
//	_meta      belljar/session  string                 set by the client's program
//	           belljar/fence    array of tool names
//	           progressToken    output arrives as progress notifications
//
// Wrong arguments are an answer with isError and a sentence that the model can
// act on, never a protocol error: a model sees only answers. isError is true
// exactly when the result's ok is false.
//
// Over stdio ([Stdio]) nothing but protocol can reach stdout, a line that is no
// message gets an error reply instead of ending the session, and the end of stdin
// kills what runs.
package mcpserver
