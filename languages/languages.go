// Package languages embeds one folder per language: its language.toml, the program
// that probes its toolchain, and the client by which its scripts call tools.
// Package language gives the folders their meaning.
package languages

import "embed"

// FS holds the folders, each named like its language.
//
//go:embed python
var FS embed.FS
