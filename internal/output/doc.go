// Package output keeps what a program wrote and turns it into text.
//
// A [Capture] takes one stream as raw bytes while the program runs. It keeps the
// first and the last part and counts the rest, so a program that never stops
// printing costs the engine a bounded amount of memory. Bytes stay bytes until
// somebody asks for the text: decoding and cutting happen at the edge and keep
// characters whole.
//
// [Script] renders a result for a model. Every sentence it can say stands in
// texts.go. [Explain] gives the one sentence of Result.Error from the same table.
//
// A [NeutralWriter] shows output on a terminal without letting it drive the
// terminal.
package output
