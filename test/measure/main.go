// Command measure prints how large the engine and the commands are at some commits, as a table: what a reader has to
// know, rather than how well it works. docs/design/0100-measures-of-size.md has its results.
//
//	go run ./test/measure 3c9b7ea HEAD
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./test/measure COMMIT...")
		os.Exit(2)
	}
	var all []measures
	for _, commit := range os.Args[1:] {
		files, err := filesOf(commit)
		if err == nil {
			var m measures
			if m, err = measure(files); err == nil {
				all = append(all, m)
				continue
			}
		}
		fmt.Fprintf(os.Stderr, "%s: %v\n", commit, err)
		os.Exit(1)
	}
	fmt.Print(table(os.Args[1:], all))
}

// measured are the folders that are measured.
var measured = []string{"engine", "cmd"}

// filesOf returns the Go files of a commit that are no tests and are not generated, by name.
func filesOf(commit string) (map[string]string, error) {
	out, err := exec.Command("git", append([]string{"archive", commit}, measured...)...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("git archive: %s", bytes.TrimSpace(failed.Stderr))
	}
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	archive := tar.NewReader(bytes.NewReader(out))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if path.Ext(header.Name) != ".go" || strings.HasSuffix(header.Name, "_test.go") || strings.Contains(header.Name, "/testdata/") {
			continue
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		files[header.Name] = string(text)
	}
}

// table returns the measures of some commits as a table in Markdown.
func table(commits []string, all []measures) string {
	var out strings.Builder
	fmt.Fprintf(&out, "| measure | %s |\n|---|%s\n", strings.Join(commits, " | "), strings.Repeat("---|", len(commits)))
	for i, of := range all[0].rows() {
		fmt.Fprintf(&out, "| %s |", of.name)
		for _, m := range all {
			fmt.Fprintf(&out, " %s |", m.rows()[i].value)
		}
		out.WriteString("\n")
	}
	return out.String()
}
