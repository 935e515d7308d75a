//go:build !linux

package harness

import "syscall"

// dyingWithParent does nothing: only Linux can tell.
func dyingWithParent() *syscall.SysProcAttr { return nil }
