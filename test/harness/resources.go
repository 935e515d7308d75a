package harness

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"operetta.dev/test/machine"
)

// cgroupRoots are the folders of the memory controller in control groups of version 1 and version 2.
var cgroupRoots = []struct{ dir, limit string }{
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
	{"/sys/fs/cgroup", "memory.max"},
}

// StartOperatorWithin is StartOperator in a control group with a memory limit in bytes, as in a container: the
// operator reads the limit, and the kernel kills it, or one of its workers, beyond it. It reports whether
// there is a limit, which needs the rights of root. PeakMemory works in any case.
func (s *Env) StartOperatorWithin(bytes int64, args ...string) (o *Operator, limited bool) {
	s.T.Helper()
	dir := s.newCgroup(bytes)
	if dir == "" {
		o = s.StartOperator(args...)
	} else {
		o = s.startOperator([]string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(dir, "cgroup.procs")}, args...)
		s.T.Cleanup(func() { o.removeCgroup(dir) })
	}
	o.WatchMemory()
	return o, dir != ""
}

// newCgroup returns the folder of a new control group with a memory limit in bytes, or "" if there can be
// none.
func (s *Env) newCgroup(bytes int64) string {
	for _, g := range cgroupRoots {
		if _, err := os.Stat(filepath.Join(g.dir, "cgroup.procs")); err != nil {
			continue
		}
		dir := filepath.Join(g.dir, "operetta-test-"+s.Namespace)
		if os.Mkdir(dir, 0o755) != nil {
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
