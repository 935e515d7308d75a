package play

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"operetta.dev/test/docs/internal/commands"
	"operetta.dev/test/machine"
)

func TestTheReadmeDoesWhatItSays(t *testing.T) {
	newStage(t).play("README.md")
}

func TestTheTutorialDoesWhatItSays(t *testing.T) {
	newStage(t).play("docs/tutorial.md")
}

// TestThePageOnInstallingDoesWhatItSays has the package of the README and the folder config,
// as its reader has.
func TestThePageOnInstallingDoesWhatItSays(t *testing.T) {
	s := newStage(t)
	s.copyRepository("config")
	s.writeFiles("README.md")
	exports, err := startedPlayground(t)
	if err != nil {
		t.Fatal(err)
	}
	s.exports = append(append(s.exports, exports...), `export PATH="$PWD/bin:$PATH"`)
	for _, b := range s.blocks("docs/install.md") {
		if strings.Contains(b.Text, "kubectl delete -f -") {
			expectRights(t, s) // what comes after the roles are deleted is refused, and should be
		}
		if err := s.step(b); err != nil {
			t.Fatalf("%s: %v", b.At, err)
		}
	}
}

// expectRights fails the test if the API server has refused something to an operator.
func expectRights(t *testing.T, s *stage) {
	t.Helper()
	if len(s.operators) != 1 {
		t.Fatalf("the page has started %d operators, want 1", len(s.operators))
	}
	if log := s.operators[0].Log.Text(); strings.Contains(log, "forbidden") {
		t.Errorf("the roles of the page do not suffice:\n%s", log)
	}
}

// TestThePageOnARepositoryOfYourOwnDoesWhatItSays starts with an empty folder, and with the
// path of the repository in a variable, as its reader does.
func TestThePageOnARepositoryOfYourOwnDoesWhatItSays(t *testing.T) {
	s := newStage(t)
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	s.exports = append(s.exports, `export PATH="$PWD/bin:$PATH"`, fmt.Sprintf("export OPERETTA=%q", checkout))
	s.play("docs/own-repository.md")
}

// TestTheCommandsOfTheOtherPagesWork runs the commands of the other pages, where a reader has
// the repository and what `make run` starts. That no command is forgotten is a test of
// package docs.
func TestTheCommandsOfTheOtherPagesWork(t *testing.T) {
	machine.Thorough(t)
	s := newStage(t)
	s.copyRepository("cue.mod", "cue", "config")
	exports, err := startedPlayground(t)
	if err != nil {
		t.Fatal(err)
	}
	s.exports = append(s.exports, exports...)
	s.exports = append(s.exports, `export PATH="$PWD/bin:$PATH"`)
	for _, line := range []string{"make build", "kubectl wait --for=condition=Ready --timeout=2m webapp/nginx-app"} {
		if err := s.command(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	for _, line := range commands.Played {
		if err := s.command(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}
