package output

// Every sentence that a model or a person reads about a run's end. The words are
// part of the contract: prompts and tests rely on them. Change them together with
// testdata.
const (
	captureMarker  = "\n…[%d bytes left out here]…\n"
	truncateMarker = "\n…[truncated to %d chars] %s\n"
	leftOut        = "%d chars of %s left out here; print less, or a part of it."
	leftOutForEver = "%d chars of %s left out here, which had %d bytes; print less, or a part of it."

	scriptNoStdout = "(script produced no stdout)"
	scriptStderr   = "(stderr: %d bytes, not shown)"
	scriptNoStderr = "(no stderr)"
	scriptEmpty    = "Error: execute_code called with empty code."
	scriptExited   = "Error: script exited with code %d."
	scriptSignal   = "Error: script was killed by signal %d (%s)."
	scriptTimeout  = "Error: execute_code timed out after %s (process killed)."
	scriptMemory   = "Error: script used more than its %s of memory (process killed)."
	scriptOutput   = "Error: script wrote more than %s of output (process killed)."
	scriptCancel   = "Error: execute_code was cancelled (process killed)."
	scriptUnbegun  = "Error: execute_code was cancelled before the script began."
	scriptFault    = "Error: execute_code harness failed: %s (fault %s)."
	scriptRefused  = "Error: %s"

	nextMemory = "Work on smaller pieces and keep less in memory at once, then call again."
	nextOutput = "Print only what matters: filter and sum up in the code, then call again."
	nextCancel = "Call again if the answer is still wanted."
	nextFault  = "This is not the script's doing. Call once more; if it fails again, give the fault id to the operator."
	nextSignal = "Fix what made it die and call again."

	headStdout  = "--- stdout before %s ---"
	headStderr  = "--- stderr before %s ---"
	headDenials = "--- refused by the sandbox ---"
	denialLine  = "- %s"
	denialMaybe = "- likely: %s"
	denialMore  = "- and %d more"

	explainTimeout = "the program did not finish within %s and was killed; do less in one run or allow more time"
	explainMemory  = "the program used more than its %s of memory and was killed; work on smaller pieces or allow more"
	explainOutput  = "the program wrote more than %s of output and was killed; print only what matters"
	explainCancel  = "the run was cancelled before the program had finished"
	explainCompile = "the source did not compile; fix it as the compiler's messages say and run it again"
	explainFault   = "%s harness failed: %s (fault %s)"
)

// nextBySignal is what to do about a signal, where more can be said than "fix it".
func nextBySignal(signal int) string {
	switch signal {
	case 4, 7, 8, 11: // ILL BUS FPE SEGV
		return "The interpreter or a native library crashed: recurse less deeply, check what is handed to native code, then call again."
	case 6: // ABRT
		return "The program gave up by itself; its last words are on stderr. Fix that and call again."
	case 9: // KILL
		return "It killed itself, or another process of the run did. Take that out and call again."
	case 24: // XCPU
		return "It used up its processor time. Do less in one run and call again."
	case 25: // XFSZ
		return "It wrote a file larger than allowed. Write less and call again."
	case 31: // SYS
		return "It asked the kernel for something that the sandbox does not allow. Do it another way."
	}
	return nextSignal
}
