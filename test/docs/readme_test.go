package docs

import (
	"strings"
	"testing"
)

func TestTheReadmeDoesWhatItSays(t *testing.T) {
	onControlPlane(t)
	newStage(t).play("README.md")
}

func TestTheReadmeIsShort(t *testing.T) {
	if n := strings.Count(read(t, "README.md"), "\n"); n >= 150 {
		t.Errorf("README.md has %d lines, and should have fewer than 150", n)
	}
}

// What the README says about `make test` is not run here: it runs this test.
func TestContinuousIntegrationRunsMakeTest(t *testing.T) {
	if !strings.Contains(read(t, "README.md"), "`make test`") {
		t.Error("README.md does not name `make test`")
	}
	for line := range strings.Lines(read(t, ".ci/run")) {
		if strings.TrimSpace(line) == "make test" || strings.TrimSpace(line) == "exec make test" {
			return
		}
	}
	t.Error(".ci/run does not call `make test`")
}
