//go:build !linux

package e2e

import "syscall"

// dyingWithParent does nothing: only Linux can tell.
func dyingWithParent() *syscall.SysProcAttr { return nil }
