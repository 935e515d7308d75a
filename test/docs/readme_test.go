package docs

import (
	"regexp"
	"strings"
	"testing"
)

func TestTheReadmeIsShort(t *testing.T) {
	if n := strings.Count(read(t, "README.md").Text, "\n"); n >= 150 {
		t.Errorf("README.md has %d lines, and should have fewer than 150", n)
	}
}

// makeTest is a call of `make test` in a script.
var makeTest = regexp.MustCompile(`(?m)^\s*(exec )?make test( |$)`)

// What the README says about `make test` cannot be played: it runs this test.
func TestContinuousIntegrationRunsMakeTest(t *testing.T) {
	if !strings.Contains(read(t, "README.md").Text, "`make test`") {
		t.Error("README.md does not name `make test`")
	}
	if !makeTest.MatchString(read(t, ".ci/run").Text) {
		t.Error(".ci/run does not call `make test`")
	}
}
