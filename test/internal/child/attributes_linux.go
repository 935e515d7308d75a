package child

import "syscall"

// attributes put a process into a group of its own, to which signals can be sent, and make the kernel kill it
// when the thread that started it ends, and so also when this process is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
