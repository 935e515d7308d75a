package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReportOfGoTest(t *testing.T) {
	for name, c := range map[string]struct {
		events string
		said   []string
		tally  tally
	}{
		"of what passes, only the closing line is shown": {
			events: `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: settled\n"}
{"Action":"pass","Package":"p","Test":"TestA/sub"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"what TestMain prints\n"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}`,
			said:  []string{"ok  \tp\t0.1s"},
			tally: tally{passed: 2},
		},
		"of what fails, everything is": {
			events: `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: wrong\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}`,
			said:  []string{"    a_test.go:1: wrong", "--- FAIL: TestA (0.00s)", "FAIL\tp\t0.1s"},
			tally: tally{failed: 1},
		},
		"why a test was skipped is shown": {
			events: `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: no cluster\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"skip","Package":"q"}`,
			said:  []string{"    a_test.go:1: no cluster", "--- SKIP: TestA (0.00s)"},
			tally: tally{skipped: 1},
		},
		"a package that does not compile has failed": {
			events: `{"ImportPath":"p","Action":"build-output","Output":"# p\n"}
{"ImportPath":"p","Action":"build-output","Output":"p.go:1:2: undefined: x\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p"}`,
			said:  []string{"# p", "p.go:1:2: undefined: x", "FAIL\tp [build failed]"},
			tally: tally{failed: 1},
		},
		"a crash shows what the test had said": {
			events: `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: out of range\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}`,
			said:  []string{"panic: out of range", "FAIL\tp\t0.1s"},
			tally: tally{failed: 1},
		},
		"what is no event is shown": {
			events: "go: updates to go.mod needed",
			said:   []string{"go: updates to go.mod needed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			r := newReport(func(line string) { said = append(said, line) })
			for line := range strings.Lines(c.events) {
				r.line(strings.TrimSuffix(line, "\n"))
			}
			if diff := cmp.Diff(c.said, said); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if r.tally != c.tally {
				t.Errorf("%s, want %s", r.tally, c.tally)
			}
		})
	}
}

func TestProgressNamesThePackageThatRunsLongest(t *testing.T) {
	r := newReport(func(string) {})
	for _, line := range []string{
		`{"Action":"start","Package":"operetta.dev/engine/crd"}`,
		`{"Action":"start","Package":"operetta.dev/engine/graph"}`,
		`{"Action":"pass","Package":"operetta.dev/engine/graph"}`,
	} {
		r.line(line)
	}
	if got, want := r.progress(9), "1 of 9 packages; engine/crd"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
