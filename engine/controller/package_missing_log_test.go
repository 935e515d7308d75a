package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
)

// A cluster has the kinds of many operators, and an operator may list its own.
func TestKindsThatMayNotBeListedAreOneLineOfTheLog(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason      string
		kinds       int
		says, omits []string
	}{
		{"nothing is refused", 0, nil, []string{"msg"}},
		{"it names what is refused", 2, []string{"Thing.k00.example.com, Thing.k01.example.com", "another operator may serve them"}, []string{"more"}},
		{"a line is no list of a cluster", 500, []string{"Thing.k00.example.com", "Thing.k09.example.com", `"more"=490`}, []string{"Thing.k10.example.com"}},
	} {
		var lines []string
		s := &packageMissingTeardown{log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})}
		var kinds []string
		for i := range row.kinds {
			kinds = append(kinds, fmt.Sprintf("Thing.k%02d.example.com", row.kinds-1-i))
		}
		s.logRefused(kinds)
		if len(lines) > 1 {
			t.Errorf("%s: there are %d lines", row.reason, len(lines))
		}
		for text, want := range wanted(row.says, row.omits) {
			if got := strings.Contains(strings.Join(lines, "\n"), text); got != want {
				t.Errorf("%s: it says %q: %t, want %t: %s", row.reason, text, got, want, lines)
			}
		}
	}
}

// wanted returns which texts are wanted.
func wanted(says, omits []string) map[string]bool {
	out := map[string]bool{}
	for _, text := range says {
		out[text] = true
	}
	for _, text := range omits {
		out[text] = false
	}
	return out
}
