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

// bomb is what a package says that takes all memory when it is compiled.
const bomb = `
#Spec: {}

components: greeting: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: cr.metadata.name
	data: text: "\(len(list.Range(0, 1e11, 1)))"
}
`

// newBomb writes such a package.
func newBomb(t *testing.T, name string) *harness.Small {
	t.Helper()
	p := harness.NewSmall(t, name, bomb)
	harness.WriteFile(t, fileOf(p), bombText(t, p))
	return p
}

// bombText returns a package with what it imports.
func bombText(t *testing.T, p *harness.Small) string {
	t.Helper()
	text := strings.ReplaceAll(harness.SmallHead+bomb, "NAME", p.Name)
	return strings.Replace(text, "import ", "import \"list\"\nimport ", 1)
}

func fileOf(p *harness.Small) string { return filepath.Join(p.Dir, p.Name+".cue") }

// TestAttackFolderOfAPackage plays whoever may write to the folder of one package: a pipe, a
// device, and a package that takes all memory when it is compiled. None of them keeps the
// operator from starting, from serving the others, or from ending.
func TestAttackFolderOfAPackage(t *testing.T) {
	t.Parallel()
	s := harness.NewSite(t)
	good := harness.NewSmall(t, "besides", hello)
	piped, zeroed, bombed := harness.NewSmall(t, "piped", hello), harness.NewSmall(t, "zeroed", hello), newBomb(t, "bombed")
	if err := syscall.Mkfifo(filepath.Join(piped.Dir, "x.cue"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(zeroed.Dir, "x.cue")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	o := s.Operate(good.Dir, piped.Dir, zeroed.Dir, bombed.Dir, "--package-memory", "192Mi", harness.Everywhere, harness.Alone)
	s.ExpectAllReady(s.Create(good.Thing(s, "shop", nil)))
	t.Logf("the other package was served %s after the start", harness.Since(began))
	o.ExpectLog("the package is broken", "piped", "x.cue: it is a named pipe, and only regular files are read")
	o.ExpectLog("the package is broken", "zeroed", "x.cue: it is a link that leads out of the folder")
	o.ExpectLog("the package is broken", "bombed", "the check needs more than 192 MiB")

	// A package that is mended is served.
	if err := os.Remove(filepath.Join(piped.Dir, "x.cue")); err != nil {
		t.Fatal(err)
	}
	o.ExpectLog("package loaded", "package=piped")
	s.ExpectAllReady(s.Create(piped.Thing(s, "mended", nil)))
	if err := syscall.Mkfifo(filepath.Join(good.Dir, "x.cue"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.ExpectLog("the changed package is broken", "besides", "x.cue: it is a named pipe")
	o.Stop()
}

// TestAttackPackageThatIsReplacedWhileItIsExamined plays whoever replaces the files of a
// package again and again, by one that must not be compiled outside of a worker.
func TestAttackPackageThatIsReplacedWhileItIsExamined(t *testing.T) {
	t.Parallel()
	s := harness.NewSite(t)
	p := harness.NewSmall(t, "replaced", hello)
	o := s.Operate(p.Dir, "--package-memory", "192Mi", harness.Everywhere, harness.Alone)
	cr := s.Create(p.Thing(s, "shop", nil))
	s.ExpectAllReady(cr)
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
		// Right for long enough to be taken, and then wrong at any moment of what follows.
		put(string(right))
		<-time.After(400*time.Millisecond + rand.N(400*time.Millisecond))
		put(bombText(t, p))
		<-time.After(100 * time.Millisecond)
	}
	put(strings.Replace(string(right), "data: text: cr.spec.text", `data: text: "still here"`, 1))
	s.ExpectData("shop", "text", "still here")
	o.Stop()
}
