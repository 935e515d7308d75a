package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv("OPERETTA_TEST_PLAY_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestExitCodeTellsWrongUsageFromFailure(t *testing.T) {
	for line, want := range map[string]struct {
		code   int
		stdout string
		stderr string
	}{
		"":                  {2, "", "Usage:"},
		"help":              {0, "Usage:", ""},
		"--help":            {0, "Usage:", ""},
		"up --help":         {0, "Usage:", ""},
		"fly":               {2, "", `there is no command "fly"; see controlplane help`},
		"up --no-such-flag": {2, "", "flag provided but not defined"},
		"up now":            {2, "", `up takes no argument "now"`},
		"up --nodes 0":      {2, "", "one node at least"},
		"build all":         {2, "", `build takes no argument "all"`},
	} {
		t.Run(line, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), strings.Fields(line), &stdout, &stderr); code != want.code {
				t.Errorf("exit code %d, not %d", code, want.code)
			}
			if !strings.Contains(stdout.String(), want.stdout) || !strings.Contains(stderr.String(), want.stderr) {
				t.Errorf("stdout %q, stderr %q", &stdout, &stderr)
			}
		})
	}
}

func TestFailureIsExitCodeOne(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"build"}, io.Discard, &stderr); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(stderr.String(), "set XDG_CACHE_HOME or HOME") {
		t.Errorf("stderr: %s", &stderr)
	}
}

func TestBuildPrintsWhereTheProgramsAre(t *testing.T) {
	var stdout bytes.Buffer
	if code := run(t.Context(), []string{"build"}, &stdout, t.Output()); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for path := range strings.Lines(stdout.String()) {
		if _, err := os.Stat(strings.TrimSpace(path)); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Count(stdout.String(), "\n"); got != 6 {
		t.Errorf("%d programs", got)
	}
}

func TestUpStaysUntilItIsInterruptedAndLeavesNothing(t *testing.T) {
	cmd := exec.Command(os.Args[0], "up", "--audit")
	cmd.Env = append(os.Environ(), "OPERETTA_TEST_PLAY_MAIN=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	kubeconfig, ok := strings.CutPrefix(strings.TrimSpace(line), "export KUBECONFIG=")
	if !ok {
		t.Fatalf("stdout: %q", line)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(kubeconfig), "audit.log")); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, &stderr)
	}
	if _, err := os.Stat(filepath.Dir(kubeconfig)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder: %v", err)
	}
	if !strings.Contains(stderr.String(), "# ready after ") {
		t.Errorf("stderr: %s", &stderr)
	}
}
