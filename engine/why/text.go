package why

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/redact"
)

// maxValue bounds the text of a value.
const maxValue = 120

// Text returns an answer for a person. now is the time from which ages are counted.
func (a Answer) Text(palette explain.Palette, now time.Time) string {
	var b strings.Builder
	head := palette.Bold(a.Kind + "/" + a.Name)
	if a.Namespace != "" {
		head += palette.Dim(" in " + a.Namespace)
	}
	fmt.Fprintf(&b, "%s  %s%s\n", head, a.Path, palette.Dim(equals(a.Written, a.Value)))
	if a.Written {
		heading(&b, palette, "written by component "+a.Component)
		for _, l := range a.Lines {
			fmt.Fprintf(&b, "  %s\n", l.text(palette))
		}
	} else {
		fmt.Fprintf(&b, "%s\n", palette.Warn("the package does not write it"))
	}
	if len(a.Sources) > 0 {
		heading(&b, palette, "from")
	}
	for _, s := range a.Sources {
		fmt.Fprintf(&b, "  %s%s  %s\n", s.Path, equals(s.From != Unset, s.Value), palette.Dim(s.origin()))
		for _, l := range s.Lines {
			fmt.Fprintf(&b, "    %s\n", l.text(palette))
		}
	}
	if a.Live != nil {
		a.Live.text(&b, palette, a.Written, now)
	}
	for _, n := range a.Notes {
		fmt.Fprintf(&b, "%s %s\n", palette.Warn("note:"), redact.OneLine(n))
	}
	return b.String()
}

func heading(b *strings.Builder, palette explain.Palette, text string) {
	fmt.Fprintln(b, palette.Bold(text))
}

// equals returns a value behind a sign, or "".
func equals(known bool, value any) string {
	if !known || value == nil {
		return ""
	}
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	shown := []rune(redact.Printable(string(text)))
	if len(shown) > maxValue {
		return " = " + string(shown[:maxValue]) + "…"
	}
	return " = " + string(shown)
}

// text returns a line of the package.
func (l Line) text(palette explain.Palette) string {
	return fmt.Sprintf("%s  %s", palette.Dim(fmt.Sprintf("%s:%d", l.File, l.Line)), redact.Printable(l.Text))
}

// origin says in words how a source came to its value.
func (s Source) origin() string {
	switch s.From {
	case Given:
		switch {
		case s.Object != "":
			return "of " + s.Object
		case s.By != "":
			return "given by " + s.By
		}
		return "given in the resource"
	case Default:
		return "the default"
	case Unset:
	}
	if strings.HasPrefix(s.Path, "cr.") || strings.HasPrefix(s.Path, "config.") {
		return "not set"
	}
	return "not there yet"
}

// text writes what the cluster has.
func (l *Live) text(b *strings.Builder, palette explain.Palette, written bool, now time.Time) {
	heading(b, palette, "in the cluster")
	value := strings.TrimPrefix(equals(true, l.Value), " =")
	switch {
	case !l.Exists:
		fmt.Fprintf(b, "  %s\n", palette.Bad("the object has no such field"))
	case l.Differs:
		fmt.Fprintf(b, "  %s%s\n", palette.Bad("differs:"), value)
	case !written:
		fmt.Fprintf(b, " %s\n", value)
	}
	if l.Exists && len(l.Owners) == 0 {
		fmt.Fprintf(b, "  %s\n", "no manager owns it: the API server has set it")
	}
	for _, o := range l.Owners {
		line := "owned by " + redact.Printable(o.Manager) + "  " + o.Operation
		if o.Subresource != "" {
			line += " of " + redact.Printable(o.Subresource)
		}
		if o.Parts {
			line += ", in parts"
		}
		if o.Time != nil {
			line += palette.Dim("  " + o.Time.Format(time.RFC3339) + ", " + duration.HumanDuration(max(0, now.Sub(*o.Time))) + " ago")
		}
		fmt.Fprintf(b, "  %s\n", line)
	}
}
