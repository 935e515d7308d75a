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
	dir := t.TempDir()
	for name, text := range map[string]string{"slow/slow.cue": slowPackage, "early/early.cue": strings.ReplaceAll(slowPackage, "package slow", "package early") + "verfy: 1\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctrl, tty := openTerminal(t)
	cmd := exec.CommandContext(t.Context(), "eager", "vet", "./early", "./slow")
	var stdout bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, tty
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close() // the command has it
	shown := &strings.Builder{}
	at := regexp.MustCompile(`slow: (\d+) of \d+ resources`)
	var interrupted time.Time
	for in := bufio.NewReader(ctrl); ; {
		part, err := in.ReadString('K') // that of the end of a line of progress
		shown.WriteString(part)
		if found := at.FindStringSubmatch(part); found != nil && found[1] != "0" && found[1] != "1" && interrupted.IsZero() {
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
	took := time.Since(interrupted)
	t.Logf("it ended after %s:\n%s\n%s", took, stdout.String(), shown)
	if interrupted.IsZero() || took > machine.Limit(time.Second) {
		t.Fatalf("it ended after %s", took)
	}
	for _, want := range []string{
		`early/early\.cue:\d+: .*verfy`,
		`slow/slow\.cue:\d+: components\.bad\.objects\.bad\.data\.mode: conflicting values`,
		`# this resource shows it: operetta render -f`,
		`operetta: interrupted: slow was tried with \d+ of \d+ resources, and what was found until then is above`,
	} {
		if !regexp.MustCompile(want).MatchString(shown.String()) {
			t.Errorf("it does not show %s", want)
		}
	}
	if strings.Contains(shown.String(), "context canceled") {
		t.Error("it quotes Go")
	}
}
