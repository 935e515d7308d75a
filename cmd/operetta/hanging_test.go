package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hangingLines are lines of a package that CUE does not end with, by what they take.
var hangingLines = map[string]string{
	"memory": "x: (int | {d: d}) & (int | {}) & (int | {})\n", // https://cuelang.org/issue/4453
	"list":   "import \"list\"\n\n_x: list.Range(0, 1e11, 1)\nn: len(_x)\n",
	"number": "import \"math/bits\"\n\nx: bits.Lsh(1, 100_000_000_000)\n",
	"loop":   "import \"text/template\"\n\nx: template.Execute(\"{{range $i := 9223372036854775807}}{{end}}\", {})\n",
}

// TestVetEndsWithWhatCUEDoesNotEndWith: a person gets a line, and keeps a machine. Every command that takes
// a package has it examined first.
func TestVetEndsWithWhatCUEDoesNotEndWith(t *testing.T) {
	t.Parallel()
	for name, line := range hangingLines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "shop.cue"), []byte("package shop\n\n"+line), 0o600); err != nil {
				t.Fatal(err)
			}
			snapshot, err := readPackage(dir)
			if err != nil {
				t.Fatal(err)
			}
			e := newTestExaminer("operetta")
			e.limits.Time = time.Second
			began := time.Now()
			_, err = e.examine(t.Context(), snapshot, examineAll)
			t.Logf("after %s: %v", time.Since(began), err)
			if err == nil || !strings.Contains(err.Error(), "the check ") && !strings.Contains(err.Error(), "CUE crashed") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAnExaminationHasRoomAndGivesItBack(t *testing.T) {
	t.Parallel()
	none := errors.New("there is no room")
	for name, c := range map[string]struct {
		program string
		room    error
	}{"a good package": {"operetta", nil}, "a worker that dies": {"false", nil}, "no room": {"operetta", none}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newTestExaminer(c.program)
			taken, given := 0, 0
			e.room = func(context.Context) (func(), error) {
				taken++
				return func() { given++ }, c.room
			}
			_, err := e.examine(t.Context(), emptyPackage(t), examineAll)
			if taken != 1 || given != 1 && c.room == nil || c.room != nil && !errors.Is(err, c.room) {
				t.Errorf("room was taken %d times, and given back %d times; error %v", taken, given, err)
			}
		})
	}
}
