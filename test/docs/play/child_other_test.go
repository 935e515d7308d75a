//go:build !linux

package play

import "syscall"

// dyingWithParent puts a process into a group of its own, to which signals can be
// sent. Only Linux ties its life to that of its parent.
func dyingWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
