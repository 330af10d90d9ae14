package config

import (
	"sort"
	"strings"
)

// Nearest gives the words of a list that a misspelt word may have meant, nearest
// first, at most three.
func Nearest(word string, list []string) []string {
	type scored struct {
		word string
		away int
	}
	word = strings.ToLower(word)
	var near []scored
	for _, w := range list {
		away := distance(word, strings.ToLower(w))
		// A third of the word may be wrong; a beginning is always a hint.
		if away <= max(1, len(word)/3) || len(word) > 2 && strings.HasPrefix(strings.ToLower(w), word) {
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

// distance counts the letters to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost = 1 + min(corner, row[j], row[j+1])
			}
			corner, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
