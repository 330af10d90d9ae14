// Package cli is the command line: commands, terminal and exit codes.
//
// It translates: flags and files become a [belljar.Request], the result becomes
// streams, a line on stderr and an exit code. stdout carries what was asked for
// and nothing else, stderr all talk, one sentence each, beginning "belljar: ".
// Nothing ever asks a question.
//
// Exit codes of run are those of the program, and otherwise:
//
//	123  it did not compile        126  refused, also a mistyped command line
//	124  timed out                 127  no toolchain for the language
//	125  fault of the engine       130  cancelled (SIGINT, SIGTERM)
//	137  stopped for memory or output
//	141  whoever read stdout has gone
//
// The other commands end with 0, with 1 when they could not do it or found
// something wrong, and with 2 for a mistyped command line.
//
// # What a program gets as stdin
//
// --stdin FILE gives a file, --stdin - waits for stdin's end. Without it: a
// redirected file is given, a terminal and /dev/null are not, and a pipe is, up
// to 1 MiB. A pipe alone does not say whether somebody means to write: a CI
// system or an editor may have left it open for ever. So a pipe that stays silent
// for a moment is only waited for if a neighbour in the pipeline holds its other
// end; otherwise the program gets nothing and stderr says so.
package cli
