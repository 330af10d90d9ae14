package toolset

import "strings"

// near returns the name that somebody meant who wrote another one, or nothing when
// none is near or two are equally so. It is for names that the asker may know
// anyway: a suggestion tells that something exists.
func near(written string, names []string) string {
	const longest = 60 // bytes; longer ones are no slip of the pen
	if len(written) > longest {
		return ""
	}
	w := plainLetters(written)
	best, found, twice := 3, "", false // three letters are another word
	for _, name := range names {
		if len(name) > longest {
			continue
		}
		n := plainLetters(name)
		d := distance(w, n)
		switch short := min(len(w), len(n)); {
		case d > 0 && short >= 3 && w[:short] == n[:short]:
			d = min(d, 2) // cut short, or gone on
		case d > short/3:
			continue
		}
		switch {
		case d < best:
			best, found, twice = d, name, false
		case d == best && found != "":
			twice = true
		}
	}
	if twice {
		return ""
	}
	return found
}

// plainLetters drops what is most often written otherwise.
func plainLetters(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// distance is how many letters have to be put in, left out or replaced.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
