//go:build !unix

package audit

import "io/fs"

// Without Unix owners and modes the access lists of the user's profile folder
// are what protects the journal.

func ownedByUs(fs.FileInfo, bool) bool { return true }

func writableByOthers(fs.FileInfo) bool { return false }

func readableByOthers(fs.FileInfo) bool { return false }
