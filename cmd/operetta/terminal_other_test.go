//go:build !linux

package main

import (
	"os"
	"testing"
)

// openTerminal skips a test: how a terminal is opened differs from system to system.
func openTerminal(t *testing.T) (ctrl, tty *os.File) {
	t.Helper()
	t.Skip("only Linux opens a terminal here")
	return nil, nil
}

// setHeight is never called: there is no terminal.
func setHeight(*testing.T, *os.File, uint16) {}
