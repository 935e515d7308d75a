package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"
)

// goldenScripts are the scripts that compare what commands print with goldens: those that need no cluster, and those
// that the tests of test/e2e play on a control plane.
var goldenScripts = []string{"testdata/script/*.txtar", "../../test/e2e/testdata/commands/*.txtar"}

// goldens are the scripts that compare what a command prints when it succeeds, and when it fails.
type goldens struct{ success, failure []string }

// TestEveryCommandHasAGoldenOfASuccessAndOfAFailure looks at what the scripts run, and at what they compare.
func TestEveryCommandHasAGoldenOfASuccessAndOfAFailure(t *testing.T) {
	t.Parallel()
	root := newRoot(streams{in: &bytes.Buffer{}, out: io.Discard, err: io.Discard})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	found := map[string]*goldens{}
	for _, cmd := range shownCommands(root) {
		found[cmd.CommandPath()] = &goldens{}
	}
	for _, pattern := range goldenScripts {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no scripts, %v", pattern, err)
		}
		for _, file := range files {
			readGoldens(t, root, file, found)
		}
	}
	for _, cmd := range shownCommands(root) {
		path := cmd.CommandPath()
		if len(found[path].success) == 0 {
			t.Errorf("%s: no script compares what it prints when it succeeds", path)
		}
		if len(found[path].failure) == 0 {
			t.Errorf("%s: no script compares what it prints when it fails", path)
		}
		t.Logf("%s: success in %v, failure in %v", path, found[path].success, found[path].failure)
	}
}

// shownCommands returns a command and those below it, without those that are for another process of operetta and that
// nobody types.
func shownCommands(cmd *cobra.Command) []*cobra.Command {
	if cmd.Hidden {
		return nil
	}
	out := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		out = append(out, shownCommands(below)...)
	}
	return out
}

// readGoldens notes which commands a script runs whose output it compares, or what other programs make of that output,
// before it runs the next one.
func readGoldens(t *testing.T, root *cobra.Command, file string, found map[string]*goldens) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(data)
	var last *[]string // where a comparison is noted
	for line := range strings.Lines(string(archive.Comment)) {
		words := strings.Fields(line)
		if into, is := ranCommand(root, words, found); is {
			last = into
			continue
		}
		if last != nil && comparesGolden(archive, words) && !slices.Contains(*last, filepath.Base(file)) {
			*last = append(*last, filepath.Base(file))
		}
	}
}

// ranCommand returns where a golden is noted of the command that a line of a script runs.
func ranCommand(root *cobra.Command, words []string, found map[string]*goldens) (*[]string, bool) {
	failure := false
	switch {
	case len(words) > 2 && words[0] == "!" && words[1] == "exec":
		failure, words = true, words[2:]
	case len(words) > 2 && words[0] == "exits":
		// A difference that was found is what somebody asked for.
		failure, words = words[1] == strconv.Itoa(exitFailure), words[2:]
	case len(words) > 2 && words[0] == "visits":
		words = words[2:] // behind the path of a page
	case len(words) > 1 && words[0] == "exec":
		words = words[1:]
	default:
		return nil, false
	}
	if words[0] != "operetta" {
		return nil, false
	}
	cmd, _, err := root.Find(words[1:])
	if err != nil {
		cmd = root // a misspelled command
	}
	g := found[cmd.CommandPath()]
	if g == nil {
		return nil, true
	}
	if failure {
		return &g.failure, true
	}
	return &g.success, true
}

// comparesGolden reports whether a line of a script compares something with a file of the script, which is not empty.
func comparesGolden(archive *txtar.Archive, words []string) bool {
	if len(words) != 3 || words[0] != "cmp" && words[0] != "cmpenv" {
		return false
	}
	i := slices.IndexFunc(archive.Files, func(f txtar.File) bool {
		return f.Name == filepath.ToSlash(filepath.Clean(words[2])) || strings.HasSuffix(words[2], "/"+f.Name)
	})
	return i >= 0 && len(bytes.TrimSpace(archive.Files[i].Data)) > 0
}
