package config

import (
	"sort"
	"strings"
)

// Nearest gives the words of a list that a misspelt word may have meant, nearest
// first, at most three.
func Nearest(word string, list []string) []string {
	if len(word) > 100 {
		return nil // no slip of a finger
	}
	type scored struct {
		word string
		away int
	}
	word = strings.ToLower(word)
	var near []scored
	for _, w := range list {
		away := distance(word, strings.ToLower(w))
		// A third of the word may be wrong; a beginning is always a hint.
		if away <= (len(word)+2)/3 || len(word) > 2 && strings.HasPrefix(strings.ToLower(w), word) {
			near = append(near, scored{w, away})
		}
	}
	sort.SliceStable(near, func(i, j int) bool { return near[i].away < near[j].away })
	var words []string
	for _, s := range near[:min(3, len(near))] {
		words = append(words, s.word)
	}
	return words
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour (optimal string alignment).
func distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
