package attack

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"operetta.dev/test/harness"
)

// bomb is a CUE expression that takes all memory when it is compiled.
const bomb = `
#Spec: {}

components: greeting: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: cr.metadata.name
	data: text: "\(len(list.Range(0, 1e11, 1)))"
}
`

// newBomb writes a package with a bomb.
func newBomb(t *testing.T, name string) *harness.TestPackage {
	t.Helper()
	p := harness.NewTestPackage(t, name, bomb)
	harness.WriteFile(t, fileOf(p), bombText(t, p))
	return p
}

// bombText returns the source of a package with a bomb and its import.
func bombText(t *testing.T, p *harness.TestPackage) string {
	t.Helper()
	text := strings.ReplaceAll(harness.TestPackageHead+bomb, "NAME", p.Name)
	return strings.Replace(text, "import ", "import \"list\"\nimport ", 1)
}

func fileOf(p *harness.TestPackage) string { return filepath.Join(p.Dir, p.Name+".cue") }

// In TestAttackFolderOfAPackage the attacker may write to the folder of one package. They put a pipe, a
// device and a bomb there. None of these keeps the operator from starting, from serving the others, or
// from ending.
func TestAttackFolderOfAPackage(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	good := harness.NewTestPackage(t, "besides", helloBody)
	piped, zeroed, bombed := harness.NewTestPackage(t, "piped", helloBody), harness.NewTestPackage(t, "zeroed", helloBody), newBomb(t, "bombed")
	if err := syscall.Mkfifo(filepath.Join(piped.Dir, "x.cue"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(zeroed.Dir, "x.cue")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	o := s.StartOperator(good.Dir, piped.Dir, zeroed.Dir, bombed.Dir, "--package-memory", "192Mi", harness.Everywhere, harness.Alone)
	s.ExpectResourceReady(s.Create(good.Thing(s, "shop", nil)))
	t.Logf("the other package was served %s after the start", harness.Elapsed(began))
	o.ExpectLog("the package is broken", "piped", "x.cue: it is a named pipe, and only regular files are read")
	o.ExpectLog("the package is broken", "zeroed", "x.cue: it is a link that leads out of the folder")
	o.ExpectLog("the package is broken", "bombed", "the check needs more than 192 MiB")

	// A package that is repaired is served.
	if err := os.Remove(filepath.Join(piped.Dir, "x.cue")); err != nil {
		t.Fatal(err)
	}
	o.ExpectLog("package loaded", "package=piped")
	s.ExpectResourceReady(s.Create(piped.Thing(s, "mended", nil)))
	if err := syscall.Mkfifo(filepath.Join(good.Dir, "x.cue"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.ExpectLog("the changed package is broken", "besides", "x.cue: it is a named pipe")
	o.Stop()
}

// In TestAttackPackageThatIsReplacedWhileItIsExamined the attacker replaces the files of a package
// again and again by a package that must only be compiled in a worker.
func TestAttackPackageThatIsReplacedWhileItIsExamined(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "replaced", helloBody)
	o := s.StartOperator(p.Dir, "--package-memory", "192Mi", harness.Everywhere, harness.Alone)
	cr := s.Create(p.Thing(s, "shop", nil))
	s.ExpectResourceReady(cr)
	right, err := os.ReadFile(fileOf(p))
	if err != nil {
		t.Fatal(err)
	}
	draft, versions := filepath.Join(t.TempDir(), "draft"), 0
	put := func(text string) {
		versions++
		harness.WriteFile(t, draft, fmt.Sprintf("%s\n// %d\n", text, versions))
		if err := os.Rename(draft, fileOf(p)); err != nil {
			t.Fatal(err)
		}
	}
	const rounds = 25
	for range rounds {
		// The package is valid for long enough to be read, and then replaced at any later moment.
		put(string(right))
		<-time.After(400*time.Millisecond + rand.N(400*time.Millisecond))
		put(bombText(t, p))
		<-time.After(100 * time.Millisecond)
	}
	put(strings.Replace(string(right), "data: text: cr.spec.text", `data: text: "still here"`, 1))
	s.ExpectData("shop", "text", "still here")
	o.Stop()
}
