//go:build !linux

package main

import "syscall"

// mainThreadAttributes keeps a terminal's Ctrl-C from a child: it is ended in order. Only
// Linux can also end it when this process is killed.
func mainThreadAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// exitWithParent does nothing: only Linux can tell.
func exitWithParent() {}
