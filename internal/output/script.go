package output

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/belljar/belljar"
)

// DefaultChars is how many characters a model gets of a script's output.
const DefaultChars = 6000

// minChars is the least that leaves room for a reason and both ends of the output.
const minChars = 400

// Options of rendering for a model.
type Options struct {
	// Chars is the budget for the whole text, in characters (Unicode code points).
	// 0 means 6000; less than 400 is taken as 400.
	Chars int
}

func (o Options) chars() int {
	if o.Chars == 0 {
		return DefaultChars
	}
	return max(o.Chars, minChars)
}

// Script renders the result of execute_code for a model. The text never has more
// characters than the budget.
func Script(res *belljar.Result, opt Options) string {
	p := page{budget: opt.chars()}
	stdout, stderr := strings.TrimSpace(res.Stdout), strings.TrimSpace(res.Stderr)
	switch res.Status {
	case belljar.StatusExited:
		if res.ExitCode != nil && *res.ExitCode == 0 {
			return strings.ToValidUTF8(p.success(res, stdout), "\ufffd")
		}
		code := -1
		if res.ExitCode != nil {
			code = *res.ExitCode
		}
		p.line(fmt.Sprintf(scriptExited, code))
		p.failure(res, stdout, stderr)
	case belljar.StatusSignalled:
		number, name := 0, "unknown"
		if res.Signal != nil {
			number = *res.Signal
		}
		if res.SignalName != nil {
			name = *res.SignalName
		}
		p.line(fmt.Sprintf(scriptSignal, number, name))
		p.line(nextBySignal(number))
		p.failure(res, stdout, stderr)
	case belljar.StatusOutOfMemory:
		p.line(fmt.Sprintf(scriptMemory, size(res.Limits.MemoryBytes)))
		p.line(nextMemory)
		p.failure(res, stdout, stderr)
	case belljar.StatusOutputLimit:
		p.line(fmt.Sprintf(scriptOutput, size(res.Limits.OutputBytes)))
		p.line(nextOutput)
		p.failure(res, stdout, stderr)
	case belljar.StatusTimedOut:
		p.line(fmt.Sprintf(scriptTimeout, duration(res.Limits.TimeoutMS)))
		p.until(res, "timeout", stdout, stderr)
	case belljar.StatusCancelled:
		if res.Stage == belljar.StageRun {
			p.line(scriptCancel)
		} else {
			p.line(scriptUnbegun)
		}
		p.line(nextCancel)
		p.until(res, "cancellation", stdout, stderr)
	case belljar.StatusRefused:
		p.refusal(res.Refusal)
	default:
		p.line(fault(res))
		p.line(nextFault)
		p.until(res, "failure", stdout, stderr)
	}
	// A capture gives valid text; a result from elsewhere may not.
	return strings.ToValidUTF8(p.String(), "\ufffd")
}

// fault is the first line about a fault. Result.Error already holds the sentence.
func fault(res *belljar.Result) string {
	if res.Error != nil {
		return fmt.Sprintf(scriptRefused, *res.Error) + "."
	}
	return fmt.Sprintf(scriptFault, "no reason was given", res.Fault)
}

// page is the text being made: what must be said first, then the streams in what
// is left of the budget.
type page struct {
	budget int
	fixed  []string
	tail   []section
}

// section is a text under its heading (none when empty). A stream is cut when
// there is no room for all of it, anything else is not.
type section struct {
	heading, text string
	stream        string // stdout, stderr; empty: not a stream
	info          belljar.Output
	end           bool // its end matters more than its start
}

func (p *page) line(s string) { p.fixed = append(p.fixed, s) }

func (p *page) success(res *belljar.Result, stdout string) string {
	note := ""
	if res.Output.Stderr.Bytes > 0 {
		note = fmt.Sprintf(scriptStderr, res.Output.Stderr.Bytes)
	}
	if stdout == "" {
		p.line(scriptNoStdout)
		if note != "" {
			p.line(note)
		}
		return p.String()
	}
	room := p.budget
	if note != "" {
		room -= utf8.RuneCountInString(note) + 2
	}
	text := clip(section{text: stdout, stream: "stdout", info: res.Output.Stdout}, room, p.budget)
	if note != "" {
		text += "\n\n" + note
	}
	return text
}

func (p *page) failure(res *belljar.Result, stdout, stderr string) {
	if stderr == "" {
		p.line(scriptNoStderr)
	} else {
		p.tail = append(p.tail, section{text: stderr, stream: "stderr", info: res.Output.Stderr, end: true})
	}
	p.denials(res.Denials)
	if stdout != "" {
		p.tail = append(p.tail, section{heading: fmt.Sprintf(headStdout, "failure"), text: stdout, stream: "stdout", info: res.Output.Stdout})
	}
}

func (p *page) until(res *belljar.Result, when, stdout, stderr string) {
	p.denials(res.Denials)
	if stdout != "" {
		p.tail = append(p.tail, section{heading: fmt.Sprintf(headStdout, when), text: stdout, stream: "stdout", info: res.Output.Stdout})
	}
	if stderr != "" {
		p.tail = append(p.tail, section{heading: fmt.Sprintf(headStderr, when), text: stderr, stream: "stderr", info: res.Output.Stderr, end: true})
	}
}

// denials say why "operation not permitted" came, so they go above the streams'
// heading but never crowd them out.
func (p *page) denials(all []belljar.Denial) {
	const most, width = 5, 200
	if len(all) == 0 {
		return
	}
	var lines []string
	for i, d := range all {
		if i == most {
			lines = append(lines, fmt.Sprintf(denialMore, len(all)-most))
			break
		}
		form := denialLine
		if d.Likely {
			form = denialMaybe
		}
		lines = append(lines, fmt.Sprintf(form, first(d.Explain, width)))
	}
	p.tail = append(p.tail, section{heading: headDenials, text: strings.Join(lines, "\n")})
}

func (p *page) refusal(r *belljar.Refusal) {
	switch {
	case r == nil:
		p.line(fmt.Sprintf(scriptRefused, "the run was refused."))
	case r.Code == belljar.CodeEmptySource:
		p.line(scriptEmpty)
	default:
		p.line(fmt.Sprintf(scriptRefused, r.Reason))
		if r.Hint != "" {
			p.line(r.Hint)
		}
	}
}

// String joins the page within its budget: what is fixed, then each section. The
// streams share what is left; one that needs less than its share leaves it to the
// other.
func (p *page) String() string {
	head := strings.Join(p.fixed, "\n")
	if n := utf8.RuneCountInString(head); n > p.budget {
		return first(head, p.budget)
	}
	room := p.budget - utf8.RuneCountInString(head)
	var streams []int
	for i, s := range p.tail {
		room -= utf8.RuneCountInString(s.heading) + 3 // blank line and newline
		if s.stream == "" {
			room -= utf8.RuneCountInString(s.text)
		} else {
			streams = append(streams, i)
		}
	}
	room = max(room, 0)
	shares := make([]int, len(p.tail))
	for k, i := range streams {
		need := utf8.RuneCountInString(p.tail[i].text)
		share := room / (len(streams) - k)
		if k == 0 && len(streams) == 2 {
			share = max(share, room-utf8.RuneCountInString(p.tail[streams[1]].text))
		}
		shares[i] = min(need, share)
		room -= shares[i]
	}
	var b strings.Builder
	b.WriteString(head)
	for i, s := range p.tail {
		text := s.text
		if s.stream != "" {
			text = clip(s, shares[i], p.budget)
		}
		switch {
		case text == "":
			continue
		case s.heading == "": // the stderr of a failure follows its line directly
			b.WriteString("\n" + text)
		default:
			b.WriteString("\n\n" + s.heading + "\n" + text)
		}
	}
	return first(b.String(), p.budget)
}

// clip cuts the middle out of s so that it fits into room characters, marker
// included. The marker names the whole budget, which is what a caller can change.
func clip(s section, room, budget int) string {
	total := utf8.RuneCountInString(s.text)
	if total <= room {
		return s.text
	}
	marker := func(left int) string {
		where := fmt.Sprintf(leftOut, left, s.stream)
		if s.info.Truncated {
			where = fmt.Sprintf(leftOutForEver, left, s.stream, s.info.Bytes)
		}
		return fmt.Sprintf(truncateMarker, budget, where)
	}
	// The marker is longest when everything is left out; what that wastes is a digit.
	keep := room - utf8.RuneCountInString(marker(total))
	if keep <= 0 {
		return first(strings.Trim(marker(total), "\n"), room)
	}
	front := keep / 2
	if s.end {
		front = keep / 4
	}
	back := keep - front
	return first(s.text, front) + marker(total-keep) + s.text[offset(s.text, total-back):]
}

// first gives the first n characters of s.
func first(s string, n int) string { return s[:offset(s, n)] }

// offset is where the n-th character of s begins.
func offset(s string, n int) int {
	if n <= 0 {
		return 0
	}
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
