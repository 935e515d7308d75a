package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A testEvent is one line of `go test -json`; see `go doc test2json`. The case of names
// does not matter when they are read.
type testEvent struct {
	Action  string `json:"action"`
	Package string `json:"package"`
	Test    string `json:"test"`
	Output  string `json:"output"`
}

type testKey struct{ pkg, test string }

// A report follows `go test -json`: it counts, says where it is, and hands on what a
// person wants to read: a line for each package, and everything about what failed.
type report struct {
	say   func(line string)
	tally tally

	output   map[testKey][]string // of what has not ended yet
	failures map[string]int       // failed tests of a package
	packages int                  // that have ended
	running  []string             // packages
}

func newReport(say func(line string)) *report {
	return &report{say: say, output: map[testKey][]string{}, failures: map[string]int{}}
}

// line takes one line of output.
func (r *report) line(text string) {
	var e testEvent
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &e) != nil {
		r.say(text) // the go command itself complains
		return
	}
	key := testKey{e.Package, e.Test}
	switch e.Action {
	case "start":
		r.running = append(r.running, e.Package)
	case "output":
		r.output[key] = append(r.output[key], strings.TrimSuffix(e.Output, "\n"))
	case "build-output":
		r.say(strings.TrimSuffix(e.Output, "\n"))
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e)
		} else {
			r.endTest(e)
		}
		delete(r.output, key)
	}
}

func (r *report) endTest(e testEvent) {
	lines := r.output[testKey{e.Package, e.Test}]
	switch e.Action {
	case "pass":
		r.tally.passed++
		return
	case "skip":
		r.tally.skipped++
	case "fail":
		r.tally.failed++
		r.failures[e.Package]++
	}
	for _, l := range lines {
		if !strings.HasPrefix(l, "=== ") {
			r.say(l)
		}
	}
}

// endPackage hands on the closing line of a package. When it failed without a failed
// test, because it did not compile or crashed, all that it said is wanted.
func (r *report) endPackage(e testEvent) {
	r.packages++
	r.running = slices.DeleteFunc(r.running, func(pkg string) bool { return pkg == e.Package })
	crashed := e.Action == "fail" && r.failures[e.Package] == 0
	if crashed {
		r.tally.failed++
		r.unfinished(e.Package)
	}
	for _, l := range r.output[testKey{e.Package, ""}] {
		if crashed || isClosing(l) {
			r.say(l)
		}
	}
}

// unfinished hands on what tests said that a crash kept from ending.
func (r *report) unfinished(pkg string) {
	for key, lines := range r.output {
		if key.pkg != pkg || key.test == "" {
			continue
		}
		for _, l := range lines {
			r.say(l)
		}
		delete(r.output, key)
	}
}

// isClosing tells the line with which go test closes a package from what the package
// itself prints.
func isClosing(line string) bool {
	for _, prefix := range []string{"ok  \t", "FAIL\t"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

// progress says how far it is.
func (r *report) progress(packages int) string {
	text := fmt.Sprintf("%d of %d packages", r.packages, packages)
	if len(r.running) > 0 {
		text += "; " + strings.TrimPrefix(r.running[0], "operetta.dev/")
	}
	return text
}
