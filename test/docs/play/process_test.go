package play

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"operetta.dev/test/internal/child"
	"operetta.dev/test/machine"
)

// await waits until a process has printed a text.
func await(p *child.Process, text string) error {
	deadline := time.After(machine.Patience)
	for !strings.Contains(p.Log.Text(), text) {
		select {
		case <-p.Ended:
			return fmt.Errorf("it has ended:\n%s", p.Log.Text())
		case <-deadline:
			return fmt.Errorf("it has not printed %q:\n%s", text, p.Log.Text())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// end ends a process and what it has started, as Ctrl-C would.
func end(p *child.Process) {
	_ = syscall.Kill(-p.PID(), syscall.SIGINT)
	select {
	case <-p.Ended:
	case <-time.After(machine.Patience):
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
		<-p.Ended
	}
}

// playground is the `make run` that all documents are played on.
var playground struct {
	once    sync.Once
	process *child.Process
	exports []string
	err     error
}

// startedPlayground runs `make run`, once, and returns the lines that it tells its
// user to paste into another terminal.
func startedPlayground(t *testing.T) ([]string, error) {
	t.Helper()
	p := &playground
	p.once.Do(func() {
		cmd := exec.Command("make", "run")
		cmd.Dir = filepath.FromSlash(root)
		cmd.Env = environment()
		if p.process, p.err = child.Start(cmd); p.err != nil {
			return
		}
		if p.err = await(p.process, "Ctrl-C ends it."); p.err != nil {
			return
		}
		for line := range strings.Lines(p.process.Log.Text()) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "export ") {
				p.exports = append(p.exports, line)
			}
		}
	})
	return p.exports, p.err
}
