package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"operetta.dev/test/internal/child"
)

const (
	// stopTimeout is how long a controller may take to end in order.
	stopTimeout = 30 * time.Second
	// pollEvery is how often something is asked for that cannot be watched.
	pollEvery = 100 * time.Millisecond
)

// A process is a running controller with its workers.
type process struct {
	*child.Process

	// metrics is the address of its metrics.
	metrics string
	// socket is where it serves profiles, if it was built for that.
	socket string
}

// startProcess starts a controller, and waits until its log has a text. It ends with this process.
func startProcess(ctx context.Context, binary, running string, args ...string) (*process, error) {
	metrics, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, append(args, "--metrics-bind-address", metrics)...)
	socket := filepath.Join(os.TempDir(), fmt.Sprintf("operetta-scale-%s.sock", strings.ReplaceAll(metrics, ":", "-")))
	p := &process{metrics: metrics, socket: socket}
	cmd.Env = append(os.Environ(), profileVariable+"="+socket)
	if p.Process, err = child.Start(cmd); err != nil {
		return nil, err
	}
	p.WatchMemory()
	return p, p.waitForLog(ctx, 0, running)
}

// freeAddress returns an address on which nothing listens.
func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// waitForLog waits until the log has a text after a position.
func (p *process) waitForLog(ctx context.Context, position int, text string) error {
	return p.poll(ctx, fmt.Sprintf("%q in the log of %s", text, p.binary()), func() bool {
		return strings.Contains(p.Log.From(position), text)
	})
}

func (p *process) binary() string {
	name, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID()))
	return filepath.Base(name)
}

// poll waits until done returns true; it is an error if the process ends before.
func (p *process) poll(ctx context.Context, what string, done func() bool) error {
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		case <-p.Ended:
			return fmt.Errorf("waiting for %s: the process has ended:\n%s", what, p.Log.Tail(20))
		case <-time.After(pollEvery):
		}
	}
	return nil
}

// stop ends the process as Kubernetes does.
func (p *process) stop() {
	defer os.Remove(p.socket)
	_ = syscall.Kill(p.PID(), syscall.SIGTERM) // it may be gone
	select {
	case <-p.Ended:
	case <-time.After(stopTimeout):
		p.Kill()
	}
}

// reconciles returns how many reconciles of a kind have ended, whatever their result.
func (p *process) reconciles(ctx context.Context, kind string) (int, error) {
	total := 0
	err := p.readMetrics(ctx, func(name string, value float64) {
		if strings.HasPrefix(name, "controller_runtime_reconcile_total{") && strings.Contains(name, `controller="`+strings.ToLower(kind)) {
			total += int(value)
		}
	})
	return total, err
}

// readMetrics calls a function with each metric of the process, with its labels.
func (p *process) readMetrics(ctx context.Context, each func(name string, value float64)) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.metrics+"/metrics", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		n, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return fmt.Errorf("metrics of %s: %w", p.binary(), err)
		}
		each(line[:at], n)
	}
	return lines.Err()
}
