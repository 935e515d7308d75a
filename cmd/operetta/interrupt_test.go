package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"operetta.dev/test/machine"
)

// A slow package has a fault that shows at once, and resources that take a second each.
const slowPackage = `package slow

import (
	"list"

	"operetta.dev/schemas/operator"
)

operator.#Controller

group: "shop.example"
kind:  "Slow"
versions: v1: spec: #Spec
cr: spec: #Spec
#Spec: {mode: "a" | "b", x: bool, y: bool, z: bool, v: bool, w: bool, u: bool}
components: web: objects: {for i in list.Range(0, 300, 1) {"o\(i)": {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-\(i)", data: mode: cr.spec.mode}}}
components: bad: objects: bad: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "bad-\(cr.metadata.name)", data: mode: cr.spec.mode & "a"}
`

// TestAnInterruptedCheckSaysWhatItHasFound: a person who has waited for long has something of it.
func TestAnInterruptedCheckSaysWhatItHasFound(t *testing.T) {
	t.Parallel()
	stdout, shown := interrupt(t, map[string]string{
		"slow/slow.cue":   slowPackage,
		"early/early.cue": strings.ReplaceAll(slowPackage, "package slow", "package early") + "verfy: 1\n",
	}, `slow: ([2-9]|\d\d+) of \d+ resources`, "vet", "./early", "./slow")
	t.Logf("%s\n%s", stdout, shown)
	for _, want := range []string{
		`early/early\.cue:\d+: .*verfy`,
		`slow/slow\.cue:\d+: components\.bad\.objects\.bad\.data\.mode: conflicting values`,
		`# this resource shows it: operetta render -f`,
		`operetta: interrupted: slow was tried with \d+ of \d+ resources, and what was found until then is above`,
	} {
		if !regexp.MustCompile(want).MatchString(shown) {
			t.Errorf("it does not show %s", want)
		}
	}
	if strings.Contains(shown, "context canceled") {
		t.Error("it quotes Go")
	}
}

// A package one of whose tests ends otherwise after a crash, and the other one takes long to explore.
const (
	latchPackage = `package latch

import (
	"list"

	"operetta.dev/schemas/operator"
)

operator.#Controller

group: "shop.example"
kind:  "Latch"
versions: v1: spec: #Spec
cr: spec: #Spec
live: _
#Spec: {size: int | *1, many: int | *0}
components: a: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "latch", data: size: *live.a.cm.data.size | "\(cr.spec.size)"}
components: web: objects: {for i in list.Range(0, cr.spec.many, 1) {"o\(i)": {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-\(i)", data: size: "\(cr.spec.size)"}}}
`
	latchTests = `package latch

tests: "it keeps its first size": {
	given: cr: spec: {}
	want: {}
	steps: [{}, {cr: spec: size: 2}]
}
tests: "many objects": {
	given: cr: spec: many: 300
	want: {}
	steps: [{}, {cr: spec: many: 200}]
}
`
)

// TestAnInterruptedExplorationSaysWhatItHasFound: what ends otherwise is worth the time that it took to find it.
func TestAnInterruptedExplorationSaysWhatItHasFound(t *testing.T) {
	t.Parallel()
	stdout, shown := interrupt(t, map[string]string{"latch/latch.cue": latchPackage, "latch/latch_test.cue": latchTests},
		`latch: 1 of 2 tests explored`, "test", "--explore", "./latch")
	for _, want := range []string{
		`FAIL  latch  it keeps its first size`,
		`step 0: crash after write 1, away until the next step`,
		`2 passed, 0 failed`,
		`operetta: interrupted: latch was explored in 1 of 2 tests, and what was found until then is above`,
	} {
		if !strings.Contains(stdout+shown, want) {
			t.Errorf("it does not show %s:\n%s\n%s", want, stdout, shown)
		}
	}
	if strings.Contains(stdout+shown, "context canceled") {
		t.Error("it quotes Go")
	}
}

// interrupt runs a command in a folder with files, and interrupts it once its terminal shows a text. It returns what the
// command writes and what the terminal shows, and fails unless the command then ends soon, with a failure.
func interrupt(t *testing.T, files map[string]string, text string, args ...string) (stdout, shown string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctrl, tty := openTerminal(t)
	cmd := exec.CommandContext(t.Context(), "eager", args...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, tty
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close() // the command has it
	terminal := &strings.Builder{}
	at := regexp.MustCompile(text)
	var interrupted time.Time
	for in := bufio.NewReader(ctrl); ; {
		part, err := in.ReadString('K') // that of the end of a line of progress
		terminal.WriteString(part)
		if at.MatchString(part) && interrupted.IsZero() {
			interrupted = time.Now()
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EIO) { // the end of a terminal
				t.Fatal(err)
			}
			break
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitFailure {
		t.Errorf("the command ended with %v", err)
	}
	if took := time.Since(interrupted); interrupted.IsZero() || took > machine.Limit(time.Second) {
		t.Fatalf("it ended after %s:\n%s\n%s", took, out.String(), terminal)
	}
	return out.String(), terminal.String()
}
