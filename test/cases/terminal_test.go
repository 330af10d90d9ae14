package cases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// terminal plays a case through the command with --json, into pipes, and on a
// terminal. Pipes get the program's own bytes; a terminal must not be steered.
func (b *bench) terminal(v *verdict, c *Case) {
	p := &play{verdict: v.on("json"), b: b, c: c, s: commandLine{b}, nonce: newNonce()}
	r := p.run()
	if r == nil {
		return
	}
	ctx, cancel := context.WithTimeout(v.Context(), p.guard(&c.Expect))
	defer cancel()

	p.verdict = v.on("pipes")
	var stdout, stderr bytes.Buffer
	code, err := b.show(ctx, p, &stdout, &stderr)
	if err != nil {
		p.Errorf("%v", err)
	}
	if stdout.String() != r.res.Stdout || stderr.String() != r.res.Stderr || code != *r.res.ExitCode {
		p.Errorf("exit code %d, stdout %q, stderr %q; the result has %+v", code, &stdout, &stderr, r.res)
	}

	p.verdict = v.on("terminal")
	screen, code, err := b.onTerminal(ctx, p)
	if err != nil {
		p.Errorf("%v", err)
		return
	}
	if code != *r.res.ExitCode {
		p.Errorf("exit code %d", code)
	}
	for _, s := range append(c.Expect.StdoutContains, c.Expect.StderrContains...) {
		if !strings.Contains(screen, s) {
			p.Errorf("%q is not on the screen: %q", s, screen)
		}
	}
	if what := steering(screen); what != "" {
		p.Errorf("%s on the screen: %q", what, screen)
	}
}

// show runs the command without --json.
func (b *bench) show(ctx context.Context, p *play, stdout, stderr io.Writer) (int, error) {
	cmd, clean, err := b.commandFor(ctx, b.program(p.c, p.c.source(), p.nonce), "--quiet")
	if err != nil {
		return 0, err
	}
	defer clean()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return exitOf(cmd.Run())
}

// onTerminal gives what the command writes to a terminal.
func (b *bench) onTerminal(ctx context.Context, p *play) (string, int, error) {
	master, slave, err := openTerminal()
	if err != nil {
		return "", 0, err
	}
	defer master.Close()
	read := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(master) // a terminal without programs gives an error at its end
		read <- string(text)
	}()
	code, err := b.show(ctx, p, slave, slave)
	err = errors.Join(err, slave.Close()) // before the reader, which waits for that
	return <-read, code, err
}

func openTerminal() (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

var colour = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// steering says what in a text would do more to a terminal than show letters in
// plain colours. The terminal itself puts a carriage return before each line feed.
func steering(screen string) string {
	if !utf8.ValidString(screen) {
		return "bytes that are no text"
	}
	for _, r := range colour.ReplaceAllString(strings.ReplaceAll(screen, "\r\n", "\n"), "") {
		switch {
		case r == '\n' || r == '\t':
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			return fmt.Sprintf("control character %U", r)
		case r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return fmt.Sprintf("direction mark %U", r)
		}
	}
	return ""
}

func TestSteering(t *testing.T) {
	tests := []struct {
		text string
		safe bool
	}{
		{"plain\r\nnext\ttab \u65e5", true},
		{"\x1b[31mred\x1b[0m", true},
		{"\x1b[2J", false},
		{"\x1b]0;title\x07", false},
		{"\u009b31m", false},
		{"over\rwritten", false},
		{"\u202egnp.exe", false},
		{"\xff", false},
		{"\b", false},
	}
	for _, tt := range tests {
		if got := steering(tt.text); (got == "") != tt.safe {
			t.Errorf("%q: %q", tt.text, got)
		}
	}
}
