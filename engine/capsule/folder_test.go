package capsule_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/capsule"
	"operetta.dev/test/machine"
)

func TestAFolderOfCapsulesMayHaveWhatOthersPutThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own := filepath.Join(dir, "shop.shop.example", "town", "gone")
	for path, text := range map[string]string{
		filepath.Join(dir, "20200101T000000.000Z.capsule.json"):                         "kept for a report",
		filepath.Join(own, "20200101T000000.000Z.capsule.json"):                         "an old one",
		filepath.Join(own, "20200101T000001.000Z.capsule.json.tmp"):                     "a process has ended",
		filepath.Join(dir, "lost+found", "a", "b", "20200101T000000.000Z.capsule.json"): "of another shape, and old",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	o := newOperatorIn(t, link, capsule.Options{Bytes: 1})
	o.put(t, corner)
	o.reconcile(t, "corner")
	o.files(t, "corner", 1)
	var left []string
	machine.Eventually(t, "the oldest to make room", func() bool {
		left = nil
		for _, path := range []string{"20200101T000000.000Z.capsule.json", "shop.shop.example/town/gone", "shop.shop.example/town/corner"} {
			if _, err := os.Stat(filepath.Join(dir, path)); err == nil {
				left = append(left, path)
			}
		}
		return !slices.Contains(left, "shop.shop.example/town/gone")
	})
	if diff := cmp.Diff([]string{"20200101T000000.000Z.capsule.json", "shop.shop.example/town/corner"}, left); diff != "" {
		t.Errorf("somebody's file stays, and an empty folder does not (-want +got):\n%s", diff)
	}
}
