package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// generated is a file as the generator writes it.
func generated(text string) []byte {
	return []byte("// " + mark + " from a test; DO NOT EDIT.\n\n" + text)
}

func TestCheckFailsWithADiff(t *testing.T) {
	current := map[string][]byte{"apps/v1/types.cue": generated("package v1\n"), lightFile: archive(nil)}
	cases := map[string]struct {
		reason string
		files  map[string][]byte
		diff   []string
	}{
		"Current": {
			reason: "What was just written is current.",
			files:  current,
		},
		"Changed": {
			reason: "A file that would be written differently is shown.",
			files:  map[string][]byte{"apps/v1/types.cue": generated("package v2\n"), lightFile: archive(nil)},
			diff:   []string{"-package v1", "+package v2"},
		},
		"New": {
			reason: "So is one that is missing.",
			files: map[string][]byte{
				"apps/v1/types.cue": generated("package v1\n"), lightFile: archive(nil),
				"batch/v1/types.cue": generated("package batch\n"),
			},
			diff: []string{"+package batch"},
		},
		"Gone": {
			reason: "And one that should not be there.",
			files:  map[string][]byte{lightFile: archive(nil)},
			diff:   []string{"-package v1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := write(dir, current); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			err := compare(dir, tc.files, &out)
			if stale := len(tc.diff) > 0; errors.Is(err, errStale) != stale {
				t.Errorf("%s\nerror: %v", tc.reason, err)
			}
			for _, line := range tc.diff {
				if !strings.Contains(out.String(), line+"\n") {
					t.Errorf("%s\nno line %q in:\n%s", tc.reason, line, out.String())
				}
			}
		})
	}
}

func TestWriteLeavesHandWrittenFilesAlone(t *testing.T) {
	dir := t.TempDir()
	byHand := filepath.Join(dir, "test", "test.cue")
	if err := os.MkdirAll(filepath.Dir(byHand), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(byHand, []byte("package test\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, files := range []map[string][]byte{
		{"old/v1/types.cue": generated("package v1\n")},
		{"new/v1/types.cue": generated("package v1\n")},
	} {
		if err := write(dir, files); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := filepath.Glob(filepath.Join(dir, "*", "*", "*.cue"))
	if diff := cmp.Diff([]string{filepath.Join(dir, "new", "v1", "types.cue")}, got); diff != "" {
		t.Errorf("generated files (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(byHand); err != nil {
		t.Errorf("the file written by hand: %v", err)
	}
}

func TestGenerateIsDeterministicAndCurrent(t *testing.T) {
	first, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	second, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
	var out bytes.Buffer
	if err := compare("../../k8s", first, &out); err != nil {
		t.Errorf("%v\n%.2000s", err, out.String())
	}
}
