// Package toolsettest has MCP servers for tests: a good one with a tool of every
// kind of answer, and one for each way to misbehave. They run in the test binary
// itself, started again:
//
//	func TestMain(m *testing.M) { toolsettest.Main(); os.Exit(m.Run()) }
//
//	toolset.Server{Command: os.Args[0], Env: toolsettest.Env("good")}
package toolsettest
