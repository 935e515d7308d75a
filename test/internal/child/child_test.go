package child

import (
	"os/exec"
	"testing"
)

func TestAProcessIsRemembered(t *testing.T) {
	t.Parallel()
	p, err := Start(exec.Command("sh", "-c", "echo one; echo two >&2; echo three; exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	if got := p.ExitCode(); got != 3 {
		t.Errorf("its exit code is %d", got)
	}
	if got := p.Log.Tail(2); got != "two\nthree" {
		t.Errorf("its last lines are %q", got)
	}
	if got := p.Log.From(len("one\n")); got != "two\nthree\n" || p.Log.Len() != len("one\ntwo\nthree\n") {
		t.Errorf("the rest of its output is %q", got)
	}
}

func TestAProcessIsKilled(t *testing.T) {
	t.Parallel()
	p, err := Start(exec.Command("sleep", "600"))
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	if p.ExitCode() == 0 {
		t.Error("it has ended by itself")
	}
}

func TestAProgramThatIsNotThereIsNotStarted(t *testing.T) {
	t.Parallel()
	if _, err := Start(exec.Command("no-such-program")); err == nil {
		t.Error("there is no error")
	}
}
