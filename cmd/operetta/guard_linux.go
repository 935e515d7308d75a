package main

import (
	"os"
	"os/exec"
	"syscall"
)

// limitData makes the system refuse memory beyond a number of bytes. The address space is not
// what is limited: Go reserves more than a gigabyte of it that it never uses.
func limitData(bytes int64) error {
	// Who runs out of memory all the same is this process, and not the one that started it. Where
	// that cannot be said, nothing else is worse.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_DATA, &l); err != nil {
		return err
	}
	l.Cur = min(l.Max, uint64(max(bytes, 0)))
	l.Max = l.Cur
	return syscall.Setrlimit(syscall.RLIMIT_DATA, &l)
}

// alone makes a command the first of a group of processes, which is ended as a whole.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
