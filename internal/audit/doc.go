// Package audit keeps the journal: one record for every run and every bridged
// call, allowed or denied, in a SQLite file that several Belljar processes may
// write at once.
//
// What a caller may rely on:
//
//   - [Open] returns at once; the file is opened beside whatever the caller does
//     next. [Journal.Ready] says whether records can be taken.
//   - [Journal.Append] redacts a record and hands it to the one goroutine that
//     writes. Whatever has gathered there meanwhile is committed together.
//   - A record is safe from the death of the process (kill -9 included) when a
//     [Journal.Flush] that began after its Append has returned nil. A loss of
//     power may take the commits of the last moments: the log is synced to disk
//     every MiB, not at every commit (SQLite's synchronous=NORMAL). It never
//     damages the file.
//   - A record that could not be written is kept and tried again with the next
//     one. Append fails, instead of dropping anything, when too many wait.
//   - Nothing polls: an idle journal uses no processor time.
//
// What is left out: values under keys that sound secret, values the configuration
// names as secret, and tokens known by their shape, in arguments and summaries.
// This is a net, not a proof: a secret that looks like ordinary text and is named
// nowhere passes through it. Hence the file is readable by its owner alone.
package audit
