package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestEveryCommandTeaches(t *testing.T) {
	for _, cmd := range shownCommands(newRoot(streams{}))[1:] {
		if cmd.Hidden || cmd.Name() == "help" || strings.Contains(cmd.CommandPath(), " completion") {
			continue
		}
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
				t.Errorf("short is %q, want a few words without a period", cmd.Short)
			}
			if len(cmd.Long) <= len(cmd.Short) {
				t.Error("there is no explanation")
			}
			if !strings.Contains(cmd.Example, cmd.CommandPath()) {
				t.Errorf("the example is %q, want one of the command", cmd.Example)
			}
			checkWidth(t, cmd.Long)
		})
	}
}

// checkWidth reports lines that a terminal would break.
func checkWidth(t *testing.T, text string) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		if len([]rune(line)) > 100 {
			t.Errorf("a line is too wide for a terminal: %s", line)
		}
	}
}

func TestAChoiceTakesItsValuesOnly(t *testing.T) {
	var value string
	c := &choice{value: &value, values: []string{"a", "b"}}
	if err := c.Set("b"); err != nil || value != "b" {
		t.Errorf("b gives %q and %v, want b", value, err)
	}
	if err := c.Set("c"); err == nil || value != "b" {
		t.Errorf("c gives %q and %v, want b and an error", value, err)
	}
}

func TestTheHelpShowsTheNameThatTheBinaryWasCalledBy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, program, usage, example string }{
		"Itself":  {"most call it by its name", "/usr/bin/operetta", "operetta rbac", "  operetta rbac ./cue/..."},
		"Plugin":  {"kubectl calls its plugins", "/home/me/.krew/bin/kubectl-operetta", "kubectl operetta rbac", "  kubectl operetta rbac ./cue/..."},
		"Windows": {"there, programs have an ending", "kubectl-operetta.exe", "kubectl operetta rbac", "  kubectl operetta rbac ./cue/..."},
		"Unknown": {"a link may have any name", "/tmp/x", "operetta rbac", "  operetta rbac ./cue/..."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if code := run(t.Context(), []string{"rbac", "--help"}, streams{in: strings.NewReader(""), out: &out, err: &out, program: tc.program}); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			if text := out.String(); !strings.Contains(text, "Usage:\n  "+tc.usage+" [packages]") || !strings.Contains(text, "\n"+tc.example) {
				t.Errorf("%s:\n%s", tc.reason, text)
			}
		})
	}
}
