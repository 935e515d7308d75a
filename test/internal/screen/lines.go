package screen

import (
	"bytes"
	"sync"
)

// Lines is a writer that passes on whole lines. Call Flush at the end.
type Lines struct {
	// Say gets each line, without its end.
	Say func(line string)

	mu   sync.Mutex
	rest []byte
}

// Write implements io.Writer.
func (l *Lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, b...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return len(b), nil
		}
		l.Say(string(bytes.TrimRight(line, "\r")))
		l.rest = rest
	}
}

// Flush hands on a last line that has no end.
func (l *Lines) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) > 0 {
		l.Say(string(l.rest))
		l.rest = nil
	}
}
