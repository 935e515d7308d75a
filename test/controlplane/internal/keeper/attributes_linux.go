package keeper

import "syscall"

// childAttributes lets the kernel kill a child when the keeper is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
