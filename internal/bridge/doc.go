// Package bridge is the host side of one run's path to its tools: an inherited
// socket by which the script calls, and nothing else. There is no port, no
// address and no secret, so there is nothing to steal: who holds the descriptor
// is part of the run, and the run is all it can speak for.
//
// The package moves frames and keeps the caps. It knows no tool and no policy:
// every well-formed call goes to the [Handler], which decides and answers.
//
// # Two kinds of socket
//
// Descriptor 3 of the program is the control socket (Unix, SOCK_SEQPACKET). It
// carries no calls. A process that wants to call asks there for a stream of its
// own, and the host makes one and passes its end back in one message:
//
//	process                            host
//	   | -- 'b' 'j' version 1 ---------->|   "open"
//	   |<-- 'b' 'j' version 1 + 1 fd ----|   the process's end of a stream, or
//	   |<-- 'b' 'j' version 2 error -----|   why there is none, as in an error frame
//
// The reason for this detour is fork. The script and its forked children share
// every descriptor, and two processes that write frames to one byte stream
// interleave them, and read each other's answers. A message of a SEQPACKET
// socket is whole or not there, and any answer serves any asker, because a
// stream that nobody has used yet is as good as another. So no lock between
// processes is needed, and a child that was killed between asking and reading
// harms nobody. The host makes both ends itself and never accepts a descriptor
// from a run: what it reads from is always a plain socket whose flags the run
// cannot change. A program started by exec does not get descriptor 3 (the client
// sets close-on-exec), unless the script passes it on by intent.
//
// # Frames
//
// On a stream both sides send frames, numbers little-endian:
//
//	0               4               8    9
//	+---------------+---------------+----+------------------+
//	| length (u32)  | id (u32)      |kind| body             |
//	+---------------+---------------+----+------------------+
//	  of the body     chosen by the       length bytes
//	                  process
//
//	kind   sent by   body
//	1      process   call: u8 length of the name, the name, then the arguments,
//	                 a compact JSON object in UTF-8
//	2      host      answer: text, UTF-8
//	3      host      answer: a JSON document
//	4      host      answer: bytes
//	5      host      error: {"tool": "...", "denied": bool, "code": "...", "reason": "..."}
//
// An answer carries the id of its call. Many calls may be in flight, answers
// come in any order, ids need only be unlike among the calls in flight. Results
// travel as they are, never inside another document: escaping is what large
// answers would cost.
//
// # What goes wrong, and what then happens
//
//	body that is no call           error answer, code bad_frame; the stream lives on
//	(kind, name, JSON, UTF-8)
//	arguments nested too deep      error answer, code too_deep
//	frame above MaxFrame           drained, never stored; error answer, code too_large
//	result above MaxResult         error answer, code result_too_large
//	results nobody reads           error answer, code backlog, above MaxHeld
//	MaxInFlight calls in flight    reading stops until one is answered
//	MaxRunning calls run           the others wait in memory, as do all while answers
//	                               that the script has not read fill MaxHeld
//	frame cut off by the end       that stream ends, its calls are cancelled
//	length above 1 GiB             no frame of ours: the bridge of this run is closed
//
// Nothing a run sends, or leaves unread, can hold up another run or a Close.
//
// # How it is fast
//
// Streams are read by blocking system calls on a thread, not through the
// runtime's poller, and the goroutine that read a call runs it and writes the
// answer itself: a hand-over to another goroutine costs as much again as the
// whole call. What makes this safe is the watch (watch.go): a handler that takes
// longer than a moment loses the reader's role, and another goroutine reads on.
// Answers are written at once when the socket takes them; only what would block
// goes to a writer goroutine.
//
// # Locks
//
// writer.mu comes before Bridge.mu and socket.mu; besides that no lock is taken
// while another is held. No lock is held while a handler runs or a call blocks
// on the script, except for the queue of a stream's own writer.
package bridge
