// Package upstream talks to one MCP server over stdio: it starts the process when
// something first needs it, asks for its tools, calls them and unwraps the
// answers, and starts it again after it has died.
//
// The official SDK runs the protocol. What it reads and writes goes through a
// connection of our own, because a server is a stranger that may flood, hang, or
// print what is no protocol at all:
//
//	Client.Call -> SDK session -> conn.Write -> pipe -> server
//	Client.Call <- capture     <- conn.Read  <- pipe <- server
//
// conn bounds each message, keeps a writer from waiting for ever, drops what
// nobody handles, and takes the raw bytes of tool lists and tool results past the
// SDK, which would decode them into maps: numbers beyond 2^53 and the order of
// parameters stay as the server wrote them.
//
// # Processes
//
// A server gets a process group of its own and the environment it was given, and
// nothing else. Closing ends stdin, then terminates, then kills the group. On
// Linux the leader also dies with this process, even on kill -9; whatever it
// started sees its stdin end.
package upstream
