package harness

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"operetta.dev/test/internal/child"
	"operetta.dev/test/machine"
)

// Operator is a running `operetta run`.
type Operator struct {
	*child.Process

	T *testing.T
}

// StartOperator starts the binary under test on the test's namespace, or on those that a flag --namespace= names, under the
// test's user, and ends it with the test. Extra arguments are packages and flags.
func (s *Env) StartOperator(args ...string) *Operator {
	s.T.Helper()
	return s.startOperator(nil, args...)
}

// LaunchOperator is StartOperator without waiting until the operator runs.
func (s *Env) LaunchOperator(args ...string) *Operator {
	s.T.Helper()
	return s.launchOperator(nil, args...)
}

// startOperator starts the binary under test by a command that ends with a program and its arguments.
func (s *Env) startOperator(by []string, args ...string) *Operator {
	s.T.Helper()
	o := s.launchOperator(by, args...)
	o.ExpectLog("running")
	return o
}

// launchOperator is startOperator without waiting until the operator runs.
func (s *Env) launchOperator(by []string, args ...string) *Operator {
	s.T.Helper()
	served := []string{"--namespace=" + s.Namespace}
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--namespace=") }) {
		served = nil
		args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == Everywhere })
	}
	run := slices.Concat([]string{"--metrics-bind-address", AnyPort, "--metrics-secure=false"}, served, args)
	s.GrantRun(run...)
	all := slices.Concat(by, []string{cmp.Or(s.Binary, Suite.Operetta), "run", "--kubeconfig", s.Kubeconfig}, run)
	cmd := exec.Command(all[0], all[1:]...)
	cmd.Dir = Suite.Root
	process, err := child.Start(cmd)
	if err != nil {
		s.T.Fatal(err)
	}
	o := &Operator{Process: process, T: s.T}
	s.T.Cleanup(func() {
		o.Kill()
		if s.T.Failed() {
			s.T.Logf("the operator's log:\n%s", o.Log.Tail(150))
		}
	})
	s.Operator = o
	if !s.ownRights {
		s.refusals.read(o)
	}
	return o
}

// AnyPort lets the operator choose a free port. If the test chose one, another process could take it
// before the operator listens on it.
const AnyPort = "127.0.0.1:0"

// The servers of an operator, as its log names them.
const (
	MetricsServer = "metrics"
	HealthServer  = "health probe"
)

// addressPattern matches the address in a line of the log, in either format.
var addressPattern = regexp.MustCompile(`addr"?[=:]"?([0-9.:]+)`)

// Address returns the address of a server of the operator, once the log has it.
func (o *Operator) Address(server string) string {
	o.T.Helper()
	line := o.ExpectLog("starting server", server)
	found := addressPattern.FindStringSubmatch(line)
	if found == nil {
		o.T.Fatalf("the log has no address of the server %s: %s", server, line)
	}
	return found[1]
}

// Stop ends the operator with SIGTERM, as Kubernetes does, and waits until it has ended.
func (o *Operator) Stop() {
	o.T.Helper()
	began := time.Now()
	_ = syscall.Kill(o.PID(), syscall.SIGTERM)
	select {
	case <-o.Ended:
		o.T.Logf("the operator ended %s after SIGTERM", Elapsed(began))
	case <-time.After(machine.Limit(30 * time.Second)):
		o.T.Error("the operator does not end on SIGTERM")
		o.Kill()
	}
}

// ExpectLog waits for a line of the log that contains all parts, and returns it.
func (o *Operator) ExpectLog(parts ...string) string {
	o.T.Helper()
	return o.ExpectLogAfter(0, parts...)
}

// ExpectLogAfter waits for such a line after a position in the log.
func (o *Operator) ExpectLogAfter(position int, parts ...string) string {
	o.T.Helper()
	var found string
	Eventually(o.T, fmt.Sprintf("a line of the operator's log with %q", parts), func() error {
		for line := range strings.Lines(o.Log.From(position)) {
			// The operator may be in the middle of its last line.
			if strings.HasSuffix(line, "\n") && ContainsAll(line, parts) {
				found = strings.TrimSpace(line)
				return nil
			}
		}
		select {
		case <-o.Ended:
			o.T.Fatalf("the operator has ended:\n%s", o.Log.Tail(30))
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

// Reconciles returns the number of reconciles of a controller, whatever their result.
func (o *Operator) Reconciles(controller string) int {
	o.T.Helper()
	return o.Count("controller_runtime_reconcile_total", "controller", controller)
}

// Count returns the sum of a counter over the series that have a value of a label.
func (o *Operator) Count(metric, label, value string) int {
	o.T.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(o.Metrics()))
	if err != nil {
		o.T.Fatal(err)
	}
	total := 0.0
	for _, m := range families[metric].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == label && l.GetValue() == value {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return int(total)
}

// Probe returns the status code of a health probe, "healthz" or "readyz".
func (o *Operator) Probe(name string) int {
	o.T.Helper()
	code, _ := o.ProbeText(name)
	return code
}

// ProbeText is Probe, and returns the text of the answer as well.
func (o *Operator) ProbeText(name string) (int, string) {
	o.T.Helper()
	resp, err := http.Get("http://" + o.Address(HealthServer) + "/" + name)
	if err != nil {
		o.T.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		o.T.Fatal(err)
	}
	return resp.StatusCode, string(text)
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

// StderrOf returns the standard error of a failed command, for an error message.
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

// Lines returns the lines of a text that contain a part.
func Lines(text, part string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if strings.Contains(line, part) && !yield(strings.TrimSpace(line)) {
				return
			}
		}
	}
}
