package cli

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/belljar/belljar/internal/output"
)

// printTable lines up rows by their widest cells. Cells may come from anywhere:
// nothing in them can drive a terminal or begin a row of its own.
func (a *app) printTable(rows [][]string) error {
	var wide []int
	for _, row := range rows {
		for i := range row {
			row[i] = strings.ReplaceAll(output.NeutralString(row[i]), "\n", "␊")
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], utf8.RuneCountInString(row[i]))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", wide[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(a.out, b.String())
	return err
}
