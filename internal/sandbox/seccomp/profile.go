package seccomp

// AUDIT_ARCH_* of linux/audit.h: how the kernel names the entry of a call.
const (
	auditAMD64 = 0xc000003e
	auditARM64 = 0xc00000b7
)

// call is one line of a generated table.
type call struct {
	nr   uint16
	rule rule
}

// profileNode is the whole decision: first the architecture, since numbers mean
// nothing without it, then the number, then arguments. Numbers of no line, the
// x32 ones (bit 30 set) and negative ones among them, are not there.
func profileNode(audit uint32, calls []call) *node {
	rules := ruleNodes()
	branches := make([]branch, len(calls))
	for i, c := range calls {
		branches[i] = on(uint32(c.nr), rules[c.rule])
	}
	number := choose(fieldNumber, allBits, rules[ruleNoSys], branches...)
	return choose(fieldArch, allBits, answer(KillProcess), on(audit, number))
}
