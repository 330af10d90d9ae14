// Package bench compares Belljar with the bare programs it wraps, side by side on
// the user's machine. Times of one machine say little about another, so what it
// reports are ratios: in every round each case runs once, in turn, and a ratio is
// the median over rounds of a case divided by its base in the same round. Beside
// them stand medians, p99 and minor page faults, which have no noise.
package bench
