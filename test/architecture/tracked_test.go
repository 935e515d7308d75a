package architecture

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// maxTrackedFile is how large a file of the repository may be, in bytes: the largest, generated types of Kubernetes, has 390 kB.
const maxTrackedFile = 1 << 20

// TestNoProgramIsCommitted: every clone has it for ever, whoever deletes it later.
func TestNoProgramIsCommitted(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "-z").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	names := bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0})
	if len(names) < 1000 {
		t.Fatalf("there are only %d files", len(names))
	}
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(root, string(name)))
		switch {
		case os.IsNotExist(err): // it is deleted, and that is not committed yet
		case err != nil:
			t.Error(err)
		case info.Size() > maxTrackedFile:
			t.Errorf("%s has %d bytes: is it built? Take it out of the commit, and add it to .gitignore", name, info.Size())
		}
	}
}
