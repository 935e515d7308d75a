package gotool_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"operetta.dev/test/internal/gotool"
)

func TestProgressSaysAboutHowLongItStillTakes(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		compiled, stale int
		want            string
		reason          string
	}{
		"nothing done":    {0, 1000, "0 of 1000 packages compiled", "nobody knows how fast it will be"},
		"almost nothing":  {49, 1000, "49 of 1000 packages compiled", "the first packages are small"},
		"a quarter":       {250, 1000, "25 %, about 3 min left: 250 of 1000 packages compiled", "three more quarters"},
		"a part of one":   {240, 1000, "24 %, about 4 min left: 240 of 1000 packages compiled", "it is better to be early"},
		"almost done":     {999, 1000, "99 %, about 1 min left: 999 of 1000 packages compiled", "the programs are linked after that"},
		"more than there": {1001, 1000, "99 %, about 1 min left: 1000 of 1000 packages compiled", "the count was not exact"},
		"unknown":         {7, 0, "7 packages compiled", "of how many is not known"},
	} {
		if got := gotool.Done(time.Minute, c.compiled, c.stale); got != c.want {
			t.Errorf("%s: it says %q, want %q: %s", what, got, c.want, c.reason)
		}
	}
}

func TestPackagesThatHaveToBeCompiledAreCounted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":     "module example.com/m\n\ngo 1.26\n",
		"main.go":    "package main\n\nimport _ \"example.com/m/part\"\n\nfunc main() {}\n",
		"part/at.go": "package part\n\n// At is the time of the test.\nconst At = \"" + time.Now().String() + "\"\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", "m", ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOFLAGS=")
	if got := gotool.Stale(t.Context(), build, nil, []string{"."}); got < 1 {
		t.Errorf("before the build, %d are to be compiled", got)
	}
	if err := gotool.Run(t.Context(), build, 0); err != nil {
		t.Fatal(err)
	}
	if got := gotool.Stale(t.Context(), build, nil, []string{"."}); got != 0 {
		t.Errorf("after the build, %d are to be compiled", got)
	}
	if got := gotool.Stale(t.Context(), build, nil, []string{"./nowhere"}); got != 0 {
		t.Errorf("of a program that is not there, %d are to be compiled", got)
	}
}
