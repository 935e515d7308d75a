package play

import "syscall"

// dyingWithParent puts a process into a group of its own, to which signals can be
// sent, and makes the kernel kill it when the thread that started it ends, so also
// when this process is killed.
func dyingWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
