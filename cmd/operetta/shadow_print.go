package main

import (
	"encoding/json"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/shadow"
)

// A shadowPrinter prints what a shadow finds: for a person, or an object a line for a program.
type shadowPrinter interface {
	shadow.Printer

	// say prints the result.
	say(text string)
}

// newShadowPrinter returns the printer of a format.
func newShadowPrinter(s streams, format string) shadowPrinter {
	if format == formatJSON {
		return &shadowLines{out: s.out}
	}
	return &shadowText{streams: s, palette: newPalette(s.out)}
}

// shadowText prints for a person. Notes go to standard error.
type shadowText struct {
	streams

	palette explain.Palette
	mu      sync.Mutex
}

// Resource implements shadow.Printer.
func (p *shadowText) Resource(r shadow.Resource) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = io.WriteString(p.out, r.Text(p.palette))
}

// Gone implements shadow.Printer.
func (p *shadowText) Gone(kind schema.GroupKind, namespace, name string) {
	p.linef(p.out, "%s  %s", cluster.Ref{GroupVersionKind: kind.WithVersion(""), Namespace: namespace, Name: name}, p.palette.Dim("is gone"))
}

// Summary implements shadow.Printer.
func (p *shadowText) Summary(s shadow.Summary) { p.say(s.String()) }

func (p *shadowText) say(text string) { p.linef(p.out, "%s", text) }

// Note implements shadow.Printer.
func (p *shadowText) Note(text string) { p.linef(p.err, "note: %s", text) }

// linef prints a line.
func (p *shadowText) linef(w io.Writer, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	printLinef(w, format, args...)
}

// shadowLines prints an object a line.
type shadowLines struct {
	out io.Writer
	mu  sync.Mutex
}

// line prints one object.
func (p *shadowLines) line(of any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	encoder := json.NewEncoder(p.out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(of) // as with all that is printed: who does not read any more has left
}

// Resource implements shadow.Printer.
func (p *shadowLines) Resource(r shadow.Resource) {
	p.line(struct {
		Type string `json:"type"`
		shadow.Resource
	}{"resource", r})
}

// Gone implements shadow.Printer.
func (p *shadowLines) Gone(kind schema.GroupKind, namespace, name string) {
	p.line(struct {
		Type      string `json:"type"`
		Group     string `json:"group"`
		Kind      string `json:"kind"`
		Namespace string `json:"namespace,omitempty"`
		Name      string `json:"name"`
	}{"gone", kind.Group, kind.Kind, namespace, name})
}

// Summary implements shadow.Printer.
func (p *shadowLines) Summary(s shadow.Summary) {
	p.line(struct {
		Type string `json:"type"`
		shadow.Summary
	}{"summary", s})
}

// Note implements shadow.Printer.
func (p *shadowLines) Note(text string) {
	p.line(struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}{"note", text})
}

func (p *shadowLines) say(text string) { p.Note(text) }
