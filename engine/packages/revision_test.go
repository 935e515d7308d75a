package packages

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
)

// A counting cluster counts reads of single objects.
type counting struct {
	cluster.Cluster

	read []string
}

func (c *counting) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	c.read = append(c.read, ref.Name)
	return c.Cluster.GetLive(ctx, ref)
}

func TestOnlyTheFilesOfTheNewestRevisionAreRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		// change changes the revision of a number before a restart.
		change func(u *unstructured.Unstructured, number int64)
		reads  int
		want   string
	}{
		"Written": {"the others may have a megabyte each", func(*unstructured.Unstructured, int64) {}, 1, "c"},
		"Older":   {"an older operator has written no annotations", func(u *unstructured.Unstructured, _ int64) { u.SetAnnotations(nil) }, 3, "c"},
		"Forged": {"the content counts, not its annotations", func(u *unstructured.Unstructured, n int64) {
			if n == 1 {
				u.SetAnnotations(map[string]string{numberAnnotation: "9", digestAnnotation: "sha256:x"})
			}
		}, 2, "c"},
		"Damaged": {"the one before is the last that is good", func(u *unstructured.Unstructured, n int64) {
			if n == 3 {
				u.Object["spec"].(map[string]any)["digest"] = "sha256:x"
			}
		}, 2, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			digests := map[string]string{}
			for _, name := range []string{"a", "b", "c"} {
				s.apply("p", text("Thing", name))
				if err := s.step("p"); err != nil {
					t.Fatal(err)
				}
				digests[name] = s.states["p"].revisions[0].digest
			}
			all, err := s.memory.ListLive(t.Context(), cluster.Selection{Kind: RevisionKind})
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range all {
				number, _, _ := unstructured.NestedInt64(u.Object, "spec", "revision")
				tc.change(u, number)
				if _, err := s.memory.Put("somebody", u); err != nil {
					t.Fatal(err)
				}
			}
			s.restart()
			reads := &counting{Cluster: s.memory}
			s.Revisions = reads
			p, err := Parse(s.get("p"))
			if err != nil {
				t.Fatal(err)
			}
			last, err := s.keeper().lastGood(t.Context(), p, &state{})
			if err != nil || last == nil {
				t.Fatal(last, err)
			}
			if last.digest != digests[tc.want] || last.snapshot.Digest() != digests[tc.want] || len(reads.read) != tc.reads {
				t.Errorf("%s: the last good is %s after %d reads, want %s after %d", tc.reason, last.digest, len(reads.read), digests[tc.want], tc.reads)
			}
		})
	}
}
