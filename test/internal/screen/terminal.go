package screen

import (
	"os"
	"strings"
	"syscall"
	"unicode/utf8"
	"unsafe"
)

// terminalSize returns columns and rows, or false if the file is not a terminal.
func terminalSize(f *os.File) (columns, rows int, ok bool) {
	var size struct{ rows, columns, x, y uint16 }
	//nolint:gosec // it is how the kernel is given an address
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return 0, 0, false
	}
	// Some terminals, such as serial ones, do not know.
	if size.columns == 0 || size.rows == 0 {
		return 80, 24, true
	}
	return int(size.columns), int(size.rows), true
}

// width returns how many columns a text takes. Every character counts as one: names
// in Kubernetes, and what is drawn here, are no wider.
func width(s string) int {
	n := 0
	walk(s, func(escape bool, _ string) bool {
		if !escape {
			n++
		}
		return true
	})
	return n
}

// truncate cuts a text to a number of columns, without cutting a colour sequence.
func truncate(s string, columns int) string {
	if width(s) <= columns {
		return s
	}
	var b strings.Builder
	left, coloured := columns-1, false
	walk(s, func(escape bool, text string) bool {
		if !escape {
			left--
		}
		if left < 0 {
			return false
		}
		coloured = coloured || escape
		b.WriteString(text)
		return true
	})
	if coloured {
		b.WriteString("\x1b[0m")
	}
	return b.String() + "…"
}

// walk visits each character and each colour sequence of a text until visit returns false.
func walk(s string, visit func(escape bool, text string) bool) {
	for len(s) > 0 {
		size := 0
		escape := strings.HasPrefix(s, "\x1b[")
		if escape {
			size = strings.IndexByte(s, 'm') + 1
		}
		if size == 0 {
			_, size = utf8.DecodeRuneInString(s)
			escape = false
		}
		if !visit(escape, s[:size]) {
			return
		}
		s = s[size:]
	}
}
