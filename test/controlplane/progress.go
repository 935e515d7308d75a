package controlplane

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"operetta.dev/test/internal/gotool"
)

// progress reports how a long build goes: on a terminal with a line that is updated, otherwise with a
// line every few seconds.
type progress struct {
	out  io.Writer
	live bool
	// niceness is that of what is built.
	niceness int

	mu       sync.Mutex
	packages int
}

func newProgress(out io.Writer) *progress {
	if out == nil {
		out = io.Discard
	}
	p := &progress{out: out}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		p.live = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progress) printf(format string, args ...any) {
	fmt.Fprintf(p.out, "controlplane: "+format+"\n", args...)
}

// Write counts the packages that the Go tool names, one a line, as it compiles them.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.packages += bytes.Count(b, []byte("\n"))
	return len(b), nil
}

// watch reports on a unit until the returned function is called. Stale is how many packages have to be compiled, or
// 0 if that is not known.
func (p *progress) watch(u unit, programs string, stale int) (stop func()) {
	p.mu.Lock()
	p.packages = 0
	p.mu.Unlock()
	p.printf("building %s%s: %s", u.about, u.hint, strings.Join(programNames(u), ", "))
	start, quit, done := time.Now(), make(chan struct{}), make(chan struct{})
	every := 5 * time.Second
	if p.live {
		every = 500 * time.Millisecond
	}
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.report(u, programs, stale, start, false)
			case <-quit:
				p.report(u, programs, stale, start, true)
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

func (p *progress) report(u unit, programs string, stale int, start time.Time, last bool) {
	// Programs appear under the Go tool's names, so they are counted, not looked up.
	linked, _ := filepath.Glob(filepath.Join(programs, "*"))
	p.mu.Lock()
	compiled := p.packages
	p.mu.Unlock()
	took := time.Since(start)
	done := gotool.Done(took, compiled, stale)
	if last {
		done = gotool.Count(compiled, stale)
	}
	line := fmt.Sprintf("controlplane: %s, %d of %d programs, %s", done, len(linked), len(u.targets), took.Round(time.Second))
	switch {
	case p.live && last:
		fmt.Fprintf(p.out, "\r\x1b[K%s\n", line)
	case p.live:
		fmt.Fprintf(p.out, "\r\x1b[K%s", line)
	default:
		fmt.Fprintln(p.out, line)
	}
}

func programNames(u unit) []string {
	var names []string
	for _, t := range u.targets {
		names = append(names, t.program)
	}
	return names
}

// tail keeps the end of what is written to it.
type tail struct{ buf []byte }

const tailSize = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = t.buf[over:]
	}
	return len(b), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.buf)) }
