package controlplane

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"
)

// helloUnit is a unit that is built in a moment.
func helloUnit(main string) unit {
	return unit{
		name:  "greeter",
		about: "a greeter",
		source: fstest.MapFS{
			"greeter.mod": {Data: []byte("module example.com/greeter\n\ngo 1.26.0\n")},
			"main.go":     {Data: []byte(main)},
		},
		files:   map[string]string{"go.mod": "greeter.mod", "main.go": "main.go"},
		targets: []target{{"greet", "example.com/greeter"}},
	}
}

const hello = "package main\n\nfunc main() { println(\"hello\") }\n"

func TestUsersWhoBuildAtOnceBuildOnce(t *testing.T) {
	t.Chdir(t.TempDir()) // where no module is
	cache := t.TempDir()
	var said [3]bytes.Buffer
	var dirs [3]string
	var errs [3]error
	var all sync.WaitGroup
	for i := range said {
		all.Go(func() { dirs[i], errs[i] = helloUnit(hello).ensure(t.Context(), cache, newProgress(&said[i])) })
	}
	all.Wait()
	built := 0
	for i := range said {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if dirs[i] != dirs[0] {
			t.Errorf("folders differ: %v", dirs)
		}
		built += strings.Count(said[i].String(), "building a greeter: greet")
	}
	if built != 1 {
		t.Errorf("built %d times", built)
	}
	if !isFile(filepath.Join(dirs[0], "greet")) {
		t.Error("no program")
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "*.building")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBuildThatFailsSaysWhyAndLeavesNoFolder(t *testing.T) {
	cache := t.TempDir()
	_, err := helloUnit("package main\n\nfunc main() { undefinedName() }\n").ensure(t.Context(), cache, newProgress(nil))
	if err == nil || !strings.Contains(err.Error(), "undefined: undefinedName") {
		t.Errorf("error: %v", err)
	}
	entries, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

func TestKeyChangesWithWhatIsBuilt(t *testing.T) {
	same, other, flags, fewer := helloUnit(hello), helloUnit(hello+"\n"), helloUnit(hello), helloUnit(hello)
	flags.ldflags = "-s"
	fewer.targets = nil
	keys := map[string]string{}
	for what, u := range map[string]unit{"same": same, "other source": other, "other flags": flags, "fewer programs": fewer} {
		key, err := u.key()
		if err != nil {
			t.Fatal(err)
		}
		if also, ok := keys[key]; ok {
			t.Errorf("%s and %s have one key", what, also)
		}
		keys[key] = what
	}
	again, err := helloUnit(hello).key()
	if err != nil || keys[again] != "same" {
		t.Errorf("the key of the same source is another: %s, %v", again, err)
	}
}

func TestKeyIsAnErrorWithoutItsSource(t *testing.T) {
	u := helloUnit(hello)
	u.files["main.go"] = "gone.go"
	_, err := u.key()
	expectError(t, "key", err, fs.ErrNotExist)
}

func TestNameOfAProgramIsThatOfItsPackage(t *testing.T) {
	for pkg, want := range map[string]string{
		"go.etcd.io/etcd/server/v3":         "server",
		"k8s.io/kubernetes/cmd/kubectl":     "kubectl",
		"example.com/very":                  "very",
		"example.com/v":                     "v",
		"sigs.k8s.io/kwok/cmd/kwok":         "kwok",
		"operetta.dev/internal/keeper/cmd2": "cmd2",
	} {
		if got := defaultName(pkg); got != want {
			t.Errorf("%s: %s, not %s", pkg, got, want)
		}
	}
}

func TestProgramsOfTheAssetsFolderAreUsed(t *testing.T) {
	b, err := Build(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	assets := t.TempDir()
	for _, path := range []string{b.Etcd, b.APIServer, b.Kubectl, b.ControllerManager, b.Scheduler} {
		if err := os.Symlink(path, filepath.Join(assets, filepath.Base(path))); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(AssetsEnv, assets)
	b, err = Build(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{b.Etcd, b.APIServer, b.Kubectl, b.ControllerManager, b.Scheduler} {
		if filepath.Dir(path) != assets {
			t.Errorf("%s is not from the folder", path)
		}
	}
	for _, path := range []string{b.Kwok, b.keeper, b.stages} {
		if filepath.Dir(path) == assets || !isFile(path) {
			t.Errorf("%s is not from the cache", path)
		}
	}
	rest := programsUnit()
	if err := os.Remove(filepath.Join(assets, "kube-scheduler")); err != nil {
		t.Fatal(err)
	}
	if rest = rest.withoutExisting(assets, map[string]string{}); len(rest.targets) != 2 || rest.targets[0].program != "kube-scheduler" || rest.targets[1].program != kwokProgram {
		t.Errorf("what is left to build: %v", rest.targets)
	}
}

func TestLockIsForOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := tryLock(path)
	if first == nil || err != nil {
		t.Fatal(first, err)
	}
	if second, err := tryLock(path); second != nil || err != nil {
		t.Errorf("second: %v, %v", second, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	waited := 0
	_, err = lock(ctx, path, func() { waited++ })
	expectError(t, "lock", err, context.DeadlineExceeded)
	if waited != 1 {
		t.Errorf("told %d times that it waits", waited)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if again, err := tryLock(path); again == nil || err != nil {
		t.Errorf("again: %v, %v", again, err)
	}
}

func TestPortsOfTwoAreApart(t *testing.T) {
	dir := t.TempDir()
	const many = 300
	one, err := reservePorts(dir, many)
	if err != nil {
		t.Fatal(err)
	}
	defer one.release()
	two, err := reservePorts(dir, many)
	if err != nil {
		t.Fatal(err)
	}
	defer two.release()
	seen := map[int]bool{}
	for _, port := range append(one.ports, two.ports...) {
		if seen[port] {
			t.Errorf("port %d twice", port)
		}
		seen[port] = true
	}
	if _, err := reservePorts(dir, lastPort-firstPort+1); err == nil {
		t.Error("more ports than there are")
	}
}

func TestProgressIsALineNowAndThen(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out)
	stop := p.watch(helloUnit(hello), t.TempDir(), 3)
	if _, err := p.Write([]byte("one\ntwo\n")); err != nil {
		t.Fatal(err)
	}
	stop()
	want := "controlplane: building a greeter: greet\n" +
		"controlplane: 2 of 3 packages compiled, 0 of 1 programs, 0s\n"
	if out.String() != want {
		t.Errorf("progress:\n%s\nnot:\n%s", &out, want)
	}
}

func TestPollGivesUpWithWhatItLastSaw(t *testing.T) {
	last := errors.New("two of three")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	err := poll(ctx, "three", func(context.Context) error { return last })
	expectError(t, "poll", err, last)
	expectError(t, "poll", err, context.DeadlineExceeded)
}
