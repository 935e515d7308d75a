package main

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/spf13/cobra"
	"operetta.dev/engine/fault"
)

func TestErrorsArePrintedForPeople(t *testing.T) {
	wrong := fault.Fault{Position: fault.Position{File: "a.cue", Line: 3}, Path: "x", Message: "is wrong", Hint: "write y"}
	other := fault.Fault{Position: fault.Position{File: "b.cue", Line: 4}, Message: "is missing"}
	for name, c := range map[string]struct {
		reason string
		err    error
		code   int
		want   string
	}{
		"None":     {"no news is good news", nil, 0, ""},
		"Plain":    {"a log shows who speaks", errors.New("no such file"), 1, "operetta: no such file\n"},
		"Reported": {"nothing is said twice", errReported, 1, ""},
		"Usage":    {"help is one command away", usageError{errors.New("no")}, 1, "operetta: no\nRun 'operetta --help' for usage.\n"},
		"Faults":   {"an editor finds the line", fault.Faults{wrong, wrong}, 1, "a.cue:3: x: is wrong (write y)\na.cue:3: x: is wrong (write y)\n"},
		"Wrapped":  {"a wrapper hides no line", fmt.Errorf("loading: %w", fault.Faults{wrong}), 1, "a.cue:3: x: is wrong (write y)\n"},
		"Joined":   {"each error is one", errors.Join(errors.New("no such file"), errors.New("no such folder")), 1, "operetta: no such file\noperetta: no such folder\n"},
		"Mixed":    {"the faults of all are there", errors.Join(fault.Faults{wrong}, errors.New("no such file"), fault.Faults{other, other}), 1, "a.cue:3: x: is wrong (write y)\noperetta: no such file\nb.cue:4: is missing\nb.cue:4: is missing\n"},
		"Within":   {"what is said of all is said of each", fmt.Errorf("reading: %w", errors.Join(errors.New("no such file"), fault.Faults{wrong})), 1, "operetta: reading: no such file\na.cue:3: x: is wrong (write y)\n"},
		"Forged":   {"a name with a newline makes no line", errors.New("a\noperetta: all is well"), 1, `operetta: a\noperetta: all is well` + "\n"},
		"Two":      {"an error that has two causes in its sentence is one", fmt.Errorf("%w after %w", errors.New("no"), errors.New("yes")), 1, "operetta: no after yes\n"},
		"NoPlace":  {"a fault without a place is still ours", fault.Faults{{Message: "is empty"}}, 1, "operetta: is empty\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			code := reportError(&cobra.Command{Use: "operetta"}, &got, c.err)
			if code != c.code || got.String() != c.want {
				t.Errorf("%s: got %d %q, want %d %q", c.reason, code, got.String(), c.code, c.want)
			}
		})
	}
}
