//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/test/machine"
	"sigs.k8s.io/yaml"
)

// controlText is what a terminal acts upon: it clears the screen, rings, goes back to the start of the
// line, turns the direction round, and takes an eight-bit command.
const controlText = "a\x1b[2J\a\rb\u202ec\u2066d\u009b2Je\u2028f\x7f"

func TestWhatATerminalActsUponIsShown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain":                          "plain",
		"line\n\ttab é ж 👩‍💻":            "line\n\ttab é ж 👩‍💻",
		controlText:                      `a\u001b[2J\u0007\u000db\u202ec\u2066d\u009b2Je\u2028f\u007f`,
		"\x9b2J\xff":                     `\ufffd2J\ufffd`,
		markTrusted("\x1b[32mok\x1b[0m"): "\x1b[32mok\x1b[0m",
		escape + "SEAL[2J":               `\u001bSEAL[2J`,
	} {
		var b bytes.Buffer
		if n, err := (escapingWriter{&b}).Write([]byte(text)); err != nil || n != len(text) || b.String() != want {
			t.Errorf("%q is shown as %q, want %q", text, b.String(), want)
		}
	}
}

func TestYAMLOfNastyTextHasTheSameValue(t *testing.T) {
	t.Parallel()
	object := map[string]any{"apiVersion": "v1", "data": map[string]any{controlText: controlText + "\nline", "list": []any{"\u202e", "x"}}}
	text, err := yamlOf(object)
	if err != nil {
		t.Fatal(err)
	}
	expectNoControls(t, "the YAML", text)
	var got map[string]any
	if err := yaml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := cmp.Diff(object, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func expectNoControls(t *testing.T, what, text string) {
	t.Helper()
	if at := strings.IndexFunc(text, actsOnTerminal); at >= 0 {
		t.Errorf("%s has %q:\n%q", what, text[at:min(at+8, len(text))], text)
	}
}

// controlTextPackage says the text wherever a package can say something.
const controlTextPackage = `package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "shop.example"
kind:  "Shop"
versions: v1: {
	spec: #Spec
}

// Shop NASTY
#Spec: {
	// text NASTY
	text?: string
	"NASTY"?: string
}

cr: spec: #Spec
live: _

components: "web": {
	objects: "map": {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: name: "map"
		data: {
			text: cr.spec.text
			"k": QUOTED
		}
	}
	verify: "v": live.web.map.data.k != QUOTED
	WRONG
}
`

// controlTextCommands are the commands, in a folder with the package, a wrong one, and resources.
var controlTextCommands = map[string][]string{
	"vet":           {"vet", "shop"},
	"vet wrong":     {"vet", "wrong"},
	"vet edges":     {"vet", "--edges", "shop", "wrong"},
	"crd":           {"crd", "shop"},
	"crd json":      {"crd", "shop", "-o", "json"},
	"render":        {"render", "shop", "-f", "cr.yaml"},
	"render json":   {"render", "shop", "-f", "cr.yaml", "-o", "json"},
	"render graph":  {"render", "shop", "-f", "cr.yaml", "--graph"},
	"render wrong":  {"render", "shop", "-f", "odd.yaml"},
	"render other":  {"render", "shop", "-f", "other.yaml"},
	"render broken": {"render", "shop", "-f", "broken.yaml"},
	"render live":   {"render", "shop", "-f", "cr.yaml", "--live", "other.yaml"},
	"run":           {"run", "--dry-run", "shop", "-f", "cr.yaml", "-f", "other.yaml"},
	"run wrong":     {"run", "--dry-run", "shop", "-f", "odd.yaml"},
	"no command":    {controlText},
	"no folder":     {"vet", controlText},
	"no file":       {"render", "shop", "-f", controlText},
	"no flag":       {"vet", "--" + controlText},
	"no value":      {"crd", "shop", "-o", controlText},
	"run to delete": {"run", "--dry-run", "shop", "-f", "cr.yaml", "--delete"},
	"operate":       {"run", "shop", "--kubeconfig", controlText},
}

func TestNoCommandPrintsWhatATerminalActsUpon(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	dir := t.TempDir()
	inCUE := strings.NewReplacer("NASTY", strings.NewReplacer("\r", "", "\u2028", "").Replace(controlText), "QUOTED", `"\u001b[2J\u202e\u0007"`)
	json := `"` + escapeControls(controlText) + `"`
	for name, text := range map[string]string{
		"shop/shop.cue":                  strings.Replace(inCUE.Replace(controlTextPackage), "WRONG", "", 1),
		"wrong/x\x1b[2J\u202e\nshop.cue": strings.Replace(inCUE.Replace(controlTextPackage), "WRONG", `objects: map: data: text: "\u001b[2J\u202e" & "\u0007"`, 1),
		"cr.yaml":                        `{"apiVersion": "shop.example/v1", "kind": "Shop", "metadata": {"name": "x", "labels": {"l": ` + json + `}}, "spec": {"text": ` + json + `}}`,
		"odd.yaml":                       `{"apiVersion": "shop.example/v1", "kind": "Shop", "metadata": {"name": "x` + escapeControls(controlText) + `\nlook here"}, "spec": {` + json + `: 1}}`,
		"other.yaml":                     `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ` + json + `}, "data": {"k": ` + json + `}}`,
		"broken.yaml":                    "{\x1b[2J\u202e: [",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, args := range controlTextCommands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "operetta", args...)
			cmd.Dir = dir
			// A terminal with colours, as far as a file can be one.
			cmd.Env = append(os.Environ(), "CLICOLOR_FORCE=1", "TERM=xterm-256color")
			out, err := cmd.CombinedOutput()
			if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
				t.Fatal(err)
			}
			// Its own colours are no more than those.
			colours := strings.NewReplacer("\x1b[32m", "", "\x1b[33m", "", "\x1b[31m", "", "\x1b[2m", "", "\x1b[0m", "")
			expectNoControls(t, fmt.Sprint(args), colours.Replace(string(out)))
			if strings.Contains(string(out), "\nlook here") {
				t.Errorf("a name has a line of its own:\n%s", out)
			}
			t.Logf("%s", out)
		})
	}
}

func TestLogHasNothingThatATerminalActsUpon(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", formatJSON} {
		var b bytes.Buffer
		log := logFlags{format, logLevels[0]}.open(streams{err: escapingWriter{&b}})
		log.Info(controlText, controlText, controlText, "name", controlText)
		log.Error(errors.New(controlText), controlText)
		expectNoControls(t, "the log in "+format, b.String())
	}
}

func TestFileThatNobodyWritesToIsWaitedForUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := readDocuments(ctx, file, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	if _, err := readDocuments(t.Context(), "/dev/zero", nil); err == nil || !strings.Contains(err.Error(), "it has more than 67108864 bytes") {
		t.Errorf("the error is %v", err)
	}
}
