package main

import (
	"fmt"
	"io"
	"time"
)

// A progress shows on a terminal how far a check is that takes long. Elsewhere it shows nothing.
type progress struct {
	w     io.Writer
	name  string
	from  time.Time // when it is first shown
	shown bool
}

func newProgress(s streams, name string) *progress {
	p := &progress{name: escapeControls(name), from: time.Now().Add(s.patience)}
	if w, is := terminal(s.err); is {
		p.w = w // it writes only what it makes itself, and the name of a folder
	}
	return p
}

// tell shows how many of all are done, and of what, once that has taken a while.
func (p *progress) tell(done, all int, unit string) {
	if p.w == nil || time.Now().Before(p.from) {
		return
	}
	p.shown = true
	_, _ = fmt.Fprintf(p.w, "\r%s: %d of %d %s\x1b[K", p.name, done, all, unit)
}

// end clears the line.
func (p *progress) end() {
	if p.shown {
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
	}
}
