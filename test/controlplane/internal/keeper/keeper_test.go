package keeper

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// working returns a keeper whose goroutine runs until the test ends.
func working(t *testing.T) *Keeper {
	t.Helper()
	k := New(filepath.Join(t.TempDir(), "keeper"))
	if err := os.Mkdir(k.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	go k.Work(stop)
	t.Cleanup(func() { close(stop) })
	return k
}

func shell(k *Keeper, name, script string) Process {
	return Process{Name: name, Args: []string{"/bin/sh", "-c", script}, Env: []string{"WORD=hello"}, Log: filepath.Join(k.dir, name+".log")}
}

func TestChildWritesToItsLogAndItsEndIsKnown(t *testing.T) {
	k := working(t)
	for range 2 {
		if err := k.Start(shell(k, "child", "echo $WORD; echo there >&2; exit 3"), nil); err != nil {
			t.Fatal(err)
		}
		var result string
		if err := k.Wait("child", &result); err != nil || result != "exit status 3" {
			t.Errorf("result %q, error %v", result, err)
		}
	}
	log, err := os.ReadFile(filepath.Join(k.dir, "child.log"))
	if want := strings.Repeat("hello\nthere\n", 2); err != nil || string(log) != want {
		t.Errorf("log %q, error %v", log, err)
	}
}

func TestOneChildPerName(t *testing.T) {
	k := working(t)
	if err := k.Start(shell(k, "child", "exec sleep 1000"), nil); err != nil {
		t.Fatal(err)
	}
	if err := k.Start(shell(k, "child", "true"), nil); err == nil {
		t.Error("a second child of one name was started")
	}
	if err := k.Kill("child", nil); err != nil {
		t.Fatal(err)
	}
	if err := k.Start(shell(k, "child", "true"), nil); err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
}

func TestChildThatIsUnknownOrCannotStartIsAnError(t *testing.T) {
	k := working(t)
	for what, err := range map[string]error{
		"wait":       k.Wait("nobody", new(string)),
		"kill":       k.Kill("nobody", nil),
		"signal":     k.Signal(Signal{Name: "nobody"}, nil),
		"no program": k.Start(Process{Name: "child", Log: filepath.Join(k.dir, "log")}, nil),
		"no such":    k.Start(Process{Name: "child", Args: []string{"/no/such/program"}, Log: filepath.Join(k.dir, "log")}, nil),
		"no log":     k.Start(Process{Name: "child", Args: []string{"/bin/sh"}, Log: "/no/such/folder/log"}, nil),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestSignalToAChildThatHasEndedIsNoError(t *testing.T) {
	k := working(t)
	if err := k.Start(shell(k, "child", "true"), nil); err != nil {
		t.Fatal(err)
	}
	if err := k.Wait("child", new(string)); err != nil {
		t.Fatal(err)
	}
	if err := k.Signal(Signal{Name: "child", Number: int(syscall.SIGTERM)}, nil); err != nil {
		t.Error(err)
	}
}

func TestCloseKillsAllAndRemovesTheFolder(t *testing.T) {
	k := working(t)
	for _, name := range []string{"one", "two"} {
		if err := k.Start(shell(k, name, "exec sleep 1000"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		var result string
		if err := k.Wait(name, &result); err != nil || result != "signal: killed" {
			t.Errorf("%s: %q, %v", name, result, err)
		}
	}
	if _, err := os.Stat(k.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder: %v", err)
	}
}
