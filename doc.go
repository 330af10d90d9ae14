// Package belljar holds the words of the project: what a surface sends in and
// what comes back. It has no behaviour beyond naming and no dependency beyond
// the standard library, so every other package may import it.
//
// The whole public contract is one sentence: one [Request] in, one [Result] or
// one [Refusal] out, [Event]s meanwhile, [Record]s for ever. Every surface (CLI,
// MCP, HTTP) is a translation of it.
//
// To run programs from Go, see package jar.
package belljar
