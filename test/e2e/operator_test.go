package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// operator is a running `operetta run`.
type operator struct {
	t     *testing.T
	cmd   *exec.Cmd
	log   *logBuffer
	ended chan struct{}
}

// operate starts the binary under test on the site's namespace, under the site's
// user, and ends it with the test. Extra arguments are packages and flags.
func (s *site) operate(args ...string) *operator {
	s.t.Helper()
	o := &operator{t: s.t, log: &logBuffer{}, ended: make(chan struct{})}
	all := append([]string{
		"run", "--kubeconfig", s.kubeconfig, "--namespace", s.namespace, "--metrics-address", anyPort,
	}, args...)
	o.cmd = exec.Command(world.operetta, all...)
	o.cmd.Dir = world.root
	o.cmd.Stdout, o.cmd.Stderr = o.log, o.log
	o.cmd.SysProcAttr = dyingWithParent()
	if err := spawn(o.cmd); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		_ = o.cmd.Wait()
		close(o.ended)
	}()
	s.t.Cleanup(func() {
		o.kill()
		if s.t.Failed() {
			s.t.Logf("the operator's log:\n%s", o.log.tail(150))
		}
	})
	o.expectLog("running")
	s.operator = o
	return o
}

// anyPort lets the operator choose where it listens: a port that a test finds free may
// be taken by another before the operator has it.
const anyPort = "127.0.0.1:0"

// The servers of an operator, as its log names them.
const (
	metricsServer = "metrics"
	healthServer  = "health probe"
)

// addressIn finds the address in a line of the log, of either format.
var addressIn = regexp.MustCompile(`addr"?[=:]"?([0-9.:]+)`)

// address waits until the operator says where it serves something.
func (o *operator) address(server string) string {
	o.t.Helper()
	line := o.expectLog("starting server", server)
	return addressIn.FindStringSubmatch(line)[1]
}

// stop ends the operator as Kubernetes does, and waits for that.
func (o *operator) stop() {
	o.t.Helper()
	began := time.Now()
	_ = o.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-o.ended:
		o.t.Logf("the operator ended %s after SIGTERM", since(began))
	case <-time.After(30 * time.Second):
		o.t.Error("the operator does not end on SIGTERM")
		o.kill()
	}
}

// kill ends the operator as a crash would.
func (o *operator) kill() {
	_ = o.cmd.Process.Kill()
	<-o.ended
}

// expectLog waits for a line that holds all parts, and returns it.
func (o *operator) expectLog(parts ...string) string {
	o.t.Helper()
	return o.expectLogAfter(0, parts...)
}

// expectLogAfter waits for such a line behind a position of the log.
func (o *operator) expectLogAfter(position int, parts ...string) string {
	o.t.Helper()
	var found string
	eventually(o.t, fmt.Sprintf("a line of the operator's log with %q", parts), func() error {
		for line := range strings.Lines(o.log.from(position)) {
			if containsAll(line, parts) {
				found = strings.TrimSpace(line)
				return nil
			}
		}
		select {
		case <-o.ended:
			o.t.Fatalf("the operator has ended:\n%s", o.log.tail(30))
		default:
		}
		return fmt.Errorf("there is none yet")
	})
	return found
}

func containsAll(text string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

// reconciles returns how often a controller has reconciled, with any result.
func (o *operator) reconciles(controller string) int {
	o.t.Helper()
	resp, err := http.Get("http://" + o.address(metricsServer) + "/metrics")
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	total := 0.0
	for _, m := range families["controller_runtime_reconcile_total"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "controller" && l.GetValue() == controller {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return int(total)
}

// logBuffer collects what a process writes.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Len()
}

func (b *logBuffer) from(position int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.buf.Bytes()[position:])
}

func (b *logBuffer) tail(lines int) string {
	all := strings.Split(strings.TrimSpace(b.from(0)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// spawn starts children from one thread that never ends: see dyingWithParent.
var spawn = func() func(*exec.Cmd) error {
	requests := make(chan *exec.Cmd)
	answers := make(chan error)
	var one sync.Mutex
	go func() {
		runtime.LockOSThread()
		for cmd := range requests {
			answers <- cmd.Start()
		}
	}()
	return func(cmd *exec.Cmd) error {
		one.Lock()
		defer one.Unlock()
		requests <- cmd
		return <-answers
	}
}()

// stderrOf returns what a failed command has written to stderr.
func stderrOf(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return ": " + strings.TrimSpace(string(exit.Stderr))
	}
	return ""
}

// writeFile writes a file of a test.
func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// lines returns the lines of a text that hold a part.
func lines(text, part string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if strings.Contains(line, part) && !yield(strings.TrimSpace(line)) {
				return
			}
		}
	}
}
