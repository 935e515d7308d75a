package live

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A firstTime is a machine on which the control plane is not built yet, as far as a demo can tell.
type firstTime struct {
	t     *testing.T
	cache string
	// log is what was built in which order, and gate a file for which the build of the control plane waits.
	log, gate string
	path      string
}

// fakeGo stands for the go command. It does not compile the control plane, which takes minutes, and otherwise is the
// real one. %s are the log, the real command, the gate, and what happens once that is open.
const fakeGo = `#!/bin/sh
say() { echo "$*" >>'%[1]s'; }
case "$*" in
build*cmd/kube-apiserver*) ;;
list*-deps*cmd/kube-apiserver*) exit 0 ;;
build*./cmd/operetta) '%[2]s' "$@"; code=$?; say built operetta; exit $code ;;
*) exec '%[2]s' "$@" ;;
esac
say builds the control plane, niceness $(nice)
until [ -e '%[3]s' ]; do sleep 0.05; done
while [ "$1" != -o ]; do shift; done
out=$2
%[4]s
`

// onAFirstTime returns such a machine, whose build of the control plane ends with a script.
func onAFirstTime(t *testing.T, end string) *firstTime {
	t.Helper()
	dir := t.TempDir()
	m := &firstTime{t: t, cache: filepath.Join(dir, "cache"), log: filepath.Join(dir, "log"), gate: filepath.Join(dir, "gate"), path: filepath.Join(dir, "bin")}
	genuine, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(m.path, 0o700); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(fakeGo, m.log, genuine, m.gate, end)
	if err := os.WriteFile(filepath.Join(m.path, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return m
}

// begin starts a demo there.
func (m *firstTime) begin(args ...string) *show {
	m.t.Helper()
	compiled, err := exec.CommandContext(m.t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		m.t.Fatal(err)
	}
	return beginWith(m.t, []string{
		"XDG_CACHE_HOME=" + m.cache, "GOCACHE=" + strings.TrimSpace(string(compiled)), "PATH=" + m.path + ":" + os.Getenv("PATH"),
	}, args...)
}

// open lets the build of the control plane go on.
func (m *firstTime) open() {
	m.t.Helper()
	if err := os.WriteFile(m.gate, nil, 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// expectOrder compares what was built, and how.
func (m *firstTime) expectOrder() {
	m.t.Helper()
	text, err := os.ReadFile(m.log)
	if err != nil {
		m.t.Fatal(err)
	}
	own, err := exec.CommandContext(m.t.Context(), "nice").Output()
	if err != nil {
		m.t.Fatal(err)
	}
	niceness, err := strconv.Atoi(strings.TrimSpace(string(own)))
	if err != nil {
		m.t.Fatal(err)
	}
	want := fmt.Sprintf("built operetta\nbuilds the control plane, niceness %d\n", min(niceness+10, 19))
	if diff := cmp.Diff(want, string(text)); diff != "" {
		m.t.Errorf("what is built (-want +got):\n%s", diff)
	}
}

// expectNoHalfBuild checks that nothing of a build is left.
func (m *firstTime) expectNoHalfBuild() {
	m.t.Helper()
	if left, _ := filepath.Glob(filepath.Join(m.cache, "operetta", "controlplane", "programs-*")); len(left) != 1 || filepath.Ext(left[0]) != ".lock" {
		m.t.Errorf("in the cache is %q", left)
	}
}

// expectInOrder checks that a demo has said some texts one after the other.
func (s *show) expectInOrder(texts ...string) {
	s.t.Helper()
	rest := s.String()
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			s.t.Errorf("it did not say %q, or too early", text)
			return
		}
		rest = after
	}
}

func TestTheFirstTimeAPreviewPlaysWhileTheControlPlaneIsBuilt(t *testing.T) {
	t.Parallel()
	var link strings.Builder
	for name, path := range map[string]string{
		"server": programs.Etcd, "kube-apiserver": programs.APIServer, "kube-controller-manager": programs.ControllerManager,
		"kube-scheduler": programs.Scheduler, "kubectl": programs.Kubectl, "kwok": programs.Kwok,
	} {
		fmt.Fprintf(&link, "cp '%s' \"$out/%s\" || exit 1\n", path, name)
	}
	m := onAFirstTime(t, link.String())
	s := m.begin("--once")
	s.await("Preview, step 2 of 2: played in memory, there is no cluster yet\nWebApp/nginx-app  Ready  3/3 components\n")
	if strings.Contains(s.String(), "✓ build the control plane") {
		t.Error("the preview came after the build of the control plane")
	}
	m.open()
	s.expectExit(0)
	s.expectInOrder(
		"✓ build operetta", "run --dry-run ./cue/... -f config/samples/webapp.yaml",
		"Preview, step 2 of 2", "Deployment/nginx-app  ready, simulated", "✓ build the control plane", "✓ start the control plane",
		"WebApp/nginx-app in default  Ready  3/3 components", "Deployment/nginx-app  ready", "Ready after ",
	)
	m.expectOrder()
	said := s.String()
	if strings.Contains(said, "\x1b") || strings.Count(said, "Preview, step ") != 1 {
		t.Error("what is no terminal gets escape codes, or a picture that moves")
	}
	_, onCluster, _ := strings.Cut(said, "✓ build the control plane")
	if strings.Contains(onCluster, "simulated") || strings.Contains(onCluster, "Preview") {
		t.Error("something of the preview is shown of the cluster")
	}
	s.expectNothingLeft()
}

func TestAControlPlaneThatIsNotBuiltIsSaidAfterThePreview(t *testing.T) {
	t.Parallel()
	m := onAFirstTime(t, "echo 'server.go:7:2: undefined: listen' >&2; exit 1")
	s := m.begin("--once")
	s.await("Preview, step 2 of 2")
	m.open()
	s.expectExit(1)
	s.expectInOrder("Preview, step 2 of 2", "✗ build the control plane", "failed: build kubernetes ", "server.go:7:2: undefined: listen")
	if strings.Contains(s.String(), "start the control plane") {
		t.Error("it started what was not built")
	}
	m.expectOrder()
	m.expectNoHalfBuild()
}

func TestAFirstTimeThatIsInterruptedLeavesNoCompiler(t *testing.T) {
	t.Parallel()
	compiler := filepath.Join(t.TempDir(), "compiler")
	m := onAFirstTime(t, "sleep 600 & echo $! >'"+compiler+".new'; mv '"+compiler+".new' '"+compiler+"'; wait")
	s := m.begin()
	s.await("Preview, step 2 of 2")
	m.open()
	var id []byte
	eventually(t, "the compiler to run", func() (err error) {
		id, err = os.ReadFile(compiler)
		return err
	})
	s.signal(syscall.SIGINT)
	s.expectExit(130)
	s.expectInOrder("Preview, step 2 of 2", "✗ build the control plane", "interrupted")
	pid, err := strconv.Atoi(strings.TrimSpace(string(id)))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the compiler to be gone", func() error {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("process %d: %w", pid, err)
		}
		return nil
	})
	m.expectNoHalfBuild()
}
