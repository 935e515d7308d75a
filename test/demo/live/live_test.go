package live

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"operetta.dev/test/controlplane"
	"operetta.dev/test/internal/binary"
	"operetta.dev/test/internal/testcache"
	"operetta.dev/test/machine"
)

// demoBinary is the demo, and root the folder that it runs in.
var demoBinary, root, kubectl string

// programs are those of the control plane.
var programs controlplane.Binaries

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("live: skipped, it needs control planes")
		return
	}
	code, err := prepare(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "live:", err)
		code = 1
	}
	os.Exit(code)
}

// prepare builds everything beforehand, so that no test waits for it.
func prepare(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "operetta-demo-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if root, err = filepath.Abs("../../.."); err != nil {
		return 0, err
	}
	repository, err := testcache.Look(root)
	if err != nil {
		return 0, err
	}
	if programs, err = controlplane.Build(context.Background(), os.Stderr); err != nil {
		return 0, err
	}
	kubectl, demoBinary = programs.Kubectl, filepath.Join(dir, "demo")
	// bin/operetta stays as it is if nothing has changed: the time of bin is one of those by which go test keeps the results of others.
	build := binary.Command()
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", build, err, out)
	}
	if err := binary.To(context.Background(), root, demoBinary, "./test/demo"); err != nil {
		return 0, err
	}
	return repository.Run(m)
}

// A show is a demo that runs.
type show struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

// Write takes what the demo prints.
func (s *show) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(b)
}

func (s *show) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// begin starts a demo.
func begin(t *testing.T, args ...string) *show {
	t.Helper()
	return beginWith(t, nil, args...)
}

// beginWith starts a demo with more in its environment.
func beginWith(t *testing.T, environment []string, args ...string) *show {
	t.Helper()
	s := &show{t: t, cmd: exec.Command(demoBinary, args...), done: make(chan struct{})}
	s.cmd.Dir = root
	s.cmd.Stdout, s.cmd.Stderr = s, s
	// A KUBECONFIG of the environment is somebody else's, and must not be used.
	s.cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(t.TempDir(), "theirs"), "HOME="+os.Getenv("HOME"))
	s.cmd.Env = append(s.cmd.Env, environment...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		_ = s.cmd.Wait() // the exit code is looked at
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Signal(os.Interrupt)
		<-s.done
		if t.Failed() {
			t.Logf("the demo said:\n%s", s)
		}
	})
	return s
}

// await waits until a text stands in what the demo printed.
func (s *show) await(text string) {
	s.t.Helper()
	eventually(s.t, "the demo to say "+text, func() error {
		ended := s.ended()
		if strings.Contains(s.String(), text) {
			return nil
		}
		if ended {
			s.t.Fatalf("the demo ended and had not said %s", text)
		}
		return errors.New("it has not")
	})
}

func (s *show) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

func (s *show) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// expectExit waits until the demo has ended, with a code.
func (s *show) expectExit(want int) {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(machine.Patience):
		s.t.Fatalf("the demo did not end within %s", machine.Patience)
	}
	if got := s.cmd.ProcessState.ExitCode(); got != want {
		s.t.Errorf("exit code %d, want %d", got, want)
	}
}

var folder = regexp.MustCompile(`\S+/operetta-controlplane-\d+`)

// home returns the folder of the demo's control plane.
func (s *show) home() string {
	s.t.Helper()
	dir := folder.FindString(s.String())
	if dir == "" {
		s.t.Fatal("the demo did not say where its kubeconfig is")
	}
	return dir
}

// expectNothingLeft waits until the folder of the control plane is gone, and every
// process that was started with something in it.
func (s *show) expectNothingLeft() {
	s.t.Helper()
	home := s.home()
	eventually(s.t, "everything to be gone", func() error {
		if _, err := os.Stat(home); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s is there: %w", home, err)
		}
		commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range commands {
			// It may have ended by now.
			if line, _ := os.ReadFile(name); bytes.Contains(line, []byte(home)) {
				return fmt.Errorf("a process is there: %q", line)
			}
		}
		return nil
	})
}

// ask runs kubectl against the demo's control plane.
func (s *show) ask(args ...string) string {
	s.t.Helper()
	home := s.home()
	args = append([]string{"--kubeconfig", filepath.Join(home, "kubeconfig"), "--cache-dir", s.t.TempDir()}, args...)
	out, err := exec.CommandContext(s.t.Context(), kubectl, args...).CombinedOutput()
	if err != nil {
		s.t.Errorf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// eventually waits until check is content.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	late := time.After(machine.Patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-late:
			t.Fatalf("waited %s for %s: %v", machine.Patience, what, err)
		case <-tick.C:
		}
	}
}
