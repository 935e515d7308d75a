package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

// Operator is a running `operetta run`.
type Operator struct {
	T     *testing.T
	cmd   *exec.Cmd
	Log   *logBuffer
	ended chan struct{}
}

// Operate starts the binary under test on the site's namespace, under the site's
// user, and ends it with the test. Extra arguments are packages and flags.
func (s *Site) Operate(args ...string) *Operator {
	s.T.Helper()
	o := &Operator{T: s.T, Log: &logBuffer{}, ended: make(chan struct{})}
	all := append([]string{
		"run", "--kubeconfig", s.Kubeconfig, "--namespace", s.Namespace, "--metrics-bind-address", AnyPort,
	}, args...)
	o.cmd = exec.Command(World.Operetta, all...)
	o.cmd.Dir = World.Root
	o.cmd.Stdout, o.cmd.Stderr = o.Log, o.Log
	o.cmd.SysProcAttr = dyingWithParent()
	if err := spawn(o.cmd); err != nil {
		s.T.Fatal(err)
	}
	go func() {
		_ = o.cmd.Wait()
		close(o.ended)
	}()
	s.T.Cleanup(func() {
		o.Kill()
		if s.T.Failed() {
			s.T.Logf("the operator's log:\n%s", o.Log.tail(150))
		}
	})
	o.ExpectLog("running")
	s.Operator = o
	return o
}

// AnyPort lets the operator choose where it listens: a port that a test finds free may
// be taken by another before the operator has it.
const AnyPort = "127.0.0.1:0"

// The servers of an operator, as its log names them.
const (
	MetricsServer = "metrics"
	HealthServer  = "health probe"
)

// addressIn finds the address in a line of the log, of either format.
var addressIn = regexp.MustCompile(`addr"?[=:]"?([0-9.:]+)`)

// Address waits until the operator says where it serves something.
func (o *Operator) Address(server string) string {
	o.T.Helper()
	line := o.ExpectLog("starting server", server)
	return addressIn.FindStringSubmatch(line)[1]
}

// Stop ends the operator as Kubernetes does, and waits for that.
func (o *Operator) Stop() {
	o.T.Helper()
	began := time.Now()
	_ = o.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-o.ended:
		o.T.Logf("the operator ended %s after SIGTERM", Since(began))
	case <-time.After(30 * time.Second):
		o.T.Error("the operator does not end on SIGTERM")
		o.Kill()
	}
}

// ExitCode returns the exit code of an operator that has ended by itself.
func (o *Operator) ExitCode() int {
	<-o.ended
	return o.cmd.ProcessState.ExitCode()
}

// Kill ends the operator as a crash would.
func (o *Operator) Kill() {
	_ = o.cmd.Process.Kill()
	<-o.ended
}

// ExpectLog waits for a line that holds all parts, and returns it.
func (o *Operator) ExpectLog(parts ...string) string {
	o.T.Helper()
	return o.ExpectLogAfter(0, parts...)
}

// ExpectLogAfter waits for such a line behind a position of the log.
func (o *Operator) ExpectLogAfter(position int, parts ...string) string {
	o.T.Helper()
	var found string
	Eventually(o.T, fmt.Sprintf("a line of the operator's log with %q", parts), func() error {
		for line := range strings.Lines(o.Log.From(position)) {
			if ContainsAll(line, parts) {
				found = strings.TrimSpace(line)
				return nil
			}
		}
		select {
		case <-o.ended:
			o.T.Fatalf("the operator has ended:\n%s", o.Log.tail(30))
		default:
		}
		return fmt.Errorf("there is none yet")
	})
	return found
}

// ContainsAll reports whether a text has every part.
func ContainsAll(text string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

// Reconciles returns how often a controller has reconciled, with any result.
func (o *Operator) Reconciles(controller string) int {
	o.T.Helper()
	resp, err := http.Get("http://" + o.Address(MetricsServer) + "/metrics")
	if err != nil {
		o.T.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		o.T.Fatal(err)
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

// Probe returns the status code of a health probe, "healthz" or "readyz".
func (o *Operator) Probe(name string) int {
	o.T.Helper()
	resp, err := http.Get("http://" + o.Address(HealthServer) + "/" + name)
	if err != nil {
		o.T.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// Metrics returns all metrics as text.
func (o *Operator) Metrics() string {
	o.T.Helper()
	resp, err := http.Get("http://" + o.Address(MetricsServer) + "/metrics")
	if err != nil {
		o.T.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		o.T.Fatal(err)
	}
	return string(body)
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

func (b *logBuffer) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Len()
}

func (b *logBuffer) From(position int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.buf.Bytes()[position:])
}

// Text returns all that was written.
func (b *logBuffer) Text() string { return b.From(0) }

func (b *logBuffer) tail(lines int) string {
	all := strings.Split(strings.TrimSpace(b.From(0)), "\n")
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

// StderrOf returns what a failed command has written to stderr.
func StderrOf(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return ": " + strings.TrimSpace(string(exit.Stderr))
	}
	return ""
}

// WriteFile writes a file of a test.
func WriteFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Lines returns the lines of a text that hold a part.
func Lines(text, part string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if strings.Contains(line, part) && !yield(strings.TrimSpace(line)) {
				return
			}
		}
	}
}
