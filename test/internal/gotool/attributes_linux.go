package gotool

import "syscall"

// attributes put a command into a process group of its own, so that a signal reaches its compilers, and make the
// kernel kill it when the thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
