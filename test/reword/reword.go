// Package reword lets CUE say everything in other words, so that a test sees what is decided
// by them: nothing should be.
package reword

import (
	"strings"
	"testing"

	"cuelang.org/go/cue/errors"

	"operetta.dev/engine/fault"
)

// CUE rewords all errors of CUE until the end of a test, which must not be parallel.
func CUE(t *testing.T) {
	t.Helper()
	before := fault.Wording
	fault.Wording = func(e errors.Error) (string, []any) {
		format, args := before(e)
		return "so: " + strings.ReplaceAll(format, " ", "  "), args
	}
	t.Cleanup(func() { fault.Wording = before })
}
