package gotool_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"operetta.dev/test/internal/gotool"
	"operetta.dev/test/machine"
)

// output is what a command prints, also while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// shell returns a command that stands for the go command, and what it prints.
func shell(script string) (*exec.Cmd, *output) {
	out := &output{}
	cmd := exec.Command("sh", "-c", script)
	cmd.Stdout = out
	return cmd, out
}

var errEnough = errors.New("enough")

func TestAnInterruptedBuildLeavesNoCompilerRunning(t *testing.T) {
	t.Parallel()
	for what, script := range map[string]string{
		"one that waits for its compiler":         `sleep 600 & echo $!; wait`,
		"one that goes away before its compiler":  `trap 'exit 1' INT; sh -c "trap '' INT; sleep 600" & echo $!; wait`,
		"one that has put its compiler aside":     `nohup sleep 600 >/dev/null & echo $!; wait`,
		"one whose compiler does not listen, too": `trap '' INT; sh -c "trap '' INT; sleep 600" & echo $!; sleep 600`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			cmd, out := shell(script)
			done := make(chan error, 1)
			go func() { done <- gotool.Run(ctx, cmd, 0) }()
			machine.Eventually(t, "the compiler to run", func() bool { return strings.HasSuffix(out.String(), "\n") })
			compiler := number(t, out)
			cancel(errEnough)
			if err := <-done; !errors.Is(err, errEnough) {
				t.Errorf("it ends with %v", err)
			}
			machine.Eventually(t, "the compiler to be gone", func() bool { return errors.Is(syscall.Kill(compiler, 0), syscall.ESRCH) })
		})
	}
}

func TestACommandEndsAsItDoes(t *testing.T) {
	t.Parallel()
	cmd, out := shell("echo built")
	if err := gotool.Run(t.Context(), cmd, 0); err != nil || out.String() != "built\n" {
		t.Errorf("it prints %q: %v", out, err)
	}
	var exit *exec.ExitError
	cmd, _ = shell("exit 3")
	if err := gotool.Run(t.Context(), cmd, 0); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("a build that fails: %v", err)
	}
	if err := gotool.Run(t.Context(), exec.Command("no-such-program"), 0); err == nil {
		t.Error("a program that is not there has run")
	}
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	cmd, out = shell("echo built")
	if err := gotool.Run(interrupted, cmd, 0); !errors.Is(err, errEnough) || out.String() != "" {
		t.Errorf("what was interrupted before it began prints %q: %v", out, err)
	}
}

func TestACompilerYields(t *testing.T) {
	t.Parallel()
	cmd, own := shell("nice")
	if err := gotool.Run(t.Context(), cmd, 0); err != nil {
		t.Fatal(err)
	}
	cmd, out := shell("sh -c nice")
	if err := gotool.Run(t.Context(), cmd, 7); err != nil {
		t.Fatal(err)
	}
	if got, want := number(t, out), min(number(t, own)+7, 19); got != want {
		t.Errorf("its niceness is %d, want %d", got, want)
	}
}

// number returns what a command has printed as a number.
func number(t *testing.T, o *output) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(o.String()))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
