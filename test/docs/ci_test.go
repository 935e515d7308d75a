package docs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// shells are the programs of .ci/run that every machine has.
var shells = []string{"bash", "dirname", "mktemp", "tee", "grep", "tail", "rm"}

// TestContinuousIntegrationInstallsWhatItNeeds runs .ci/run on machines that have more or less, with programs that
// say that they were called.
func TestContinuousIntegrationInstallsWhatItNeeds(t *testing.T) {
	t.Parallel()
	const sum = "3 passed, 0 failed, 0 skipped"
	for name, row := range map[string]struct {
		reason string
		// has are programs of the machine, apt is what apt-get install does, and user is who runs the script.
		has       []string
		apt, user string
		// said are what it says, and unsaid is what it must not say.
		said   []string
		unsaid string
		code   int
	}{
		"everything":         {"nothing is installed", []string{"make", "git", "gcc", "chromium"}, "exit 1", "0", []string{sum}, "installing", 0},
		"another browser":    {"it is one as well", []string{"make", "git", "clang", "google-chrome"}, "exit 1", "0", []string{sum}, "installing", 0},
		"no browser":         {"Debian has one", []string{"make", "git", "gcc"}, "exit 0", "0", []string{"installing chromium", sum}, "skipped in", 0},
		"no browser to get":  {"the other tests run", []string{"make", "git", "gcc"}, "exit 100", "0", []string{"without chromium, the tests in a browser are skipped", sum}, "", 0},
		"no root":            {"it may not install", []string{"make", "git", "gcc"}, "exit 0", "1000", []string{"without chromium, the tests in a browser are skipped", sum}, "installing", 0},
		"no compiler":        {"both are installed", []string{"make", "git"}, "exit 0", "0", []string{"installing gcc libc6-dev", "installing chromium", sum}, "", 0},
		"no compiler to get": {"nothing runs without", []string{"make", "git"}, "exit 100", "0", []string{"installing gcc"}, sum, 100},
		"no compiler, root":  {"it says what to install", []string{"make", "git"}, "exit 0", "1000", []string{"install gcc libc6-dev"}, sum, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := t.TempDir()
			for _, program := range shells {
				path, err := exec.LookPath(program)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(path, filepath.Join(bin, program)); err != nil {
					t.Fatal(err)
				}
			}
			stubs := map[string]string{"id": "echo " + row.user, "apt-get": "case \"$*\" in *install*) " + row.apt + ";; esac"}
			for _, program := range row.has {
				stubs[program] = ":"
			}
			if stubs["make"] != "" {
				stubs["make"] = "echo '" + sum + "'"
			}
			for program, does := range stubs {
				if err := os.WriteFile(filepath.Join(bin, program), []byte("#!"+filepath.Join(bin, "bash")+"\n"+does+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "bash"), "../../.ci/run")
			cmd.Env = []string{"PATH=" + bin, "TMPDIR=" + t.TempDir()}
			out, err := cmd.CombinedOutput()
			code := 0
			if exit, is := errors.AsType[*exec.ExitError](err); is {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != row.code {
				t.Errorf("%s: exit code %d, want %d:\n%s", row.reason, code, row.code, out)
			}
			for _, text := range row.said {
				if !strings.Contains(string(out), text) {
					t.Errorf("%s: it does not say %q:\n%s", row.reason, text, out)
				}
			}
			if row.unsaid != "" && strings.Contains(string(out), row.unsaid) {
				t.Errorf("%s: it says %q:\n%s", row.reason, row.unsaid, out)
			}
			if lines := strings.Split(strings.TrimSpace(string(out)), "\n"); code == 0 && lines[len(lines)-1] != sum {
				t.Errorf("the last line is %q", lines[len(lines)-1])
			}
		})
	}
}
