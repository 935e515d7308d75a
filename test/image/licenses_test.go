package image

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// expectLicences runs the command of the Dockerfile that gathers licences, and looks for one of
// every module that a binary says it is built from.
func expectLicences(t *testing.T, binary string) {
	t.Helper()
	var command string
	for _, i := range parseDockerfile(t)[0] {
		if i.name == "RUN" && strings.Contains(i.args, "test/image/licenses") {
			command = withoutMounts(i.args)
		}
	}
	work, source := t.TempDir(), builderContext(t)
	dir := filepath.Join(work, "licenses")
	for path, here := range map[string]string{" /gather ": filepath.Join(work, "gather"), " /licenses ": dir} {
		if !strings.Contains(command+" ", path) {
			t.Fatalf("the Dockerfile does not gather licences with%s: %q", path, command)
		}
		command = strings.ReplaceAll(command+" ", path, " '"+here+"' ")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "TARGETOS=linux", "TARGETARCH="+runtime.GOARCH, "PWD="+source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) == 0 {
		t.Fatal("the binary does not say what it is built from")
	}
	for _, m := range info.Deps {
		at := m.Path + "@" + m.Version
		if m.Replace != nil {
			at = m.Path + "@" + m.Replace.Version
		}
		if files, err := os.ReadDir(filepath.Join(dir, at)); err != nil || len(files) == 0 {
			t.Errorf("there is no licence of %s: %v", at, err)
		}
	}
	for _, own := range []string{info.Main.Path, "go"} {
		if _, err := os.Stat(filepath.Join(dir, own, "LICENSE")); err != nil {
			t.Error(err)
		}
	}
	t.Logf("licences of %d modules", len(info.Deps))
}
