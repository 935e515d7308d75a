package harness

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"operetta.dev/test/machine"
)

// cgroupRoots are the folders of the memory controller in control groups of version 1 and version 2.
var cgroupRoots = []struct{ dir, limit string }{
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
	{"/sys/fs/cgroup", "memory.max"},
}

// StartOperatorWithin is StartOperator in a control group with a memory limit in bytes, as in a container: the
// operator reads the limit, and the kernel kills it, or one of its workers, beyond it.
func (s *Env) StartOperatorWithin(bytes int64, args ...string) (*Operator, MemoryLimit) {
	s.T.Helper()
	var o *Operator
	dir := s.newCgroup(bytes)
	if dir == "" {
		o = s.StartOperator(args...)
	} else {
		o = s.startOperator([]string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(dir, "cgroup.procs")}, args...)
		s.T.Cleanup(func() { o.removeCgroup(dir) })
	}
	o.WatchMemory()
	return o, MemoryLimit{bytes, dir}
}

// A MemoryLimit is what an operator may take, with its workers.
type MemoryLimit struct {
	bytes int64
	// dir is the folder of the control group that has the limit, or "" if there is none, which needs the rights of root.
	dir string
}

// ExpectKept expects that the operator has kept within its limit by the highest sum of samples, and that the kernel, where it enforces the limit, has
// killed none of its processes.
func (l MemoryLimit) ExpectKept(o *Operator) {
	o.T.Helper()
	peak := o.PeakMemory()
	o.T.Logf("the operator and its workers had at most %d MiB of %d MiB (enforced by the kernel: %t)", peak>>20, l.bytes>>20, l.dir != "")
	if peak > l.bytes {
		o.T.Errorf("the operator and its workers had %d MiB", peak>>20)
	}
	if l.dir == "" {
		return
	}
	if n := l.kills(o.T); n > 0 {
		o.T.Errorf("the kernel has killed %d processes of the operator, which had more than %d MiB together", n, l.bytes>>20)
	}
}

// kills returns how many processes the kernel has killed for the limit.
func (l MemoryLimit) kills(t *testing.T) int {
	t.Helper()
	for _, name := range []string{"memory.oom_control", "memory.events"} {
		text, err := os.ReadFile(filepath.Join(l.dir, name))
		if err != nil {
			continue // it has another version
		}
		for line := range strings.Lines(string(text)) {
			if n, found := strings.CutPrefix(line, "oom_kill "); found {
				kills, _ := strconv.Atoi(strings.TrimSpace(n))
				return kills
			}
		}
	}
	t.Fatalf("the control group %s does not say what the kernel has killed", l.dir)
	return 0
}

// newCgroup returns the folder of a new control group with a memory limit in bytes, or "" if there can be
// none.
func (s *Env) newCgroup(bytes int64) string {
	for _, g := range cgroupRoots {
		if _, err := os.Stat(filepath.Join(g.dir, "cgroup.procs")); err != nil {
			continue
		}
		// A test that was killed has left the folder of its namespace, which is the same in each run.
		dir, err := os.MkdirTemp(g.dir, "operetta-test-"+s.Namespace+"-")
		if err != nil {
			continue
		}
		if os.WriteFile(filepath.Join(dir, g.limit), []byte(strconv.FormatInt(bytes, 10)), 0o600) == nil {
			return dir
		}
		_ = os.Remove(dir)
	}
	return ""
}

// removeCgroup kills the operator and removes its control group, which is possible once its last
// process is gone.
func (o *Operator) removeCgroup(dir string) {
	o.Kill()
	for deadline := time.Now().Add(machine.Patience); os.Remove(dir) != nil; {
		if time.Now().After(deadline) {
			o.T.Errorf("the control group %s cannot be removed", dir)
			return
		}
		<-time.After(20 * time.Millisecond)
	}
}

// Running reports whether the operator's process is running.
func (o *Operator) Running() bool {
	select {
	case <-o.Ended:
		return false
	default:
		return true
	}
}
