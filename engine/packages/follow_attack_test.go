package packages

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/object"
	"operetta.dev/engine/registry"
	"operetta.dev/test/registrytest"
)

// newFollowedSite returns a site that others follow.
func newFollowedSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.definitionOf = func(string) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{}
	}
	s.Followed = true
	return s
}

// decide applies a Package, and reconciles it.
func (s *site) decide(spec map[string]any, more ...map[string]any) {
	s.t.Helper()
	for _, fields := range more {
		maps.Copy(spec, fields)
	}
	s.apply("p", spec)
	if err := s.step("p"); err != nil {
		s.t.Fatal(err)
	}
}

// expectFollows fails the test unless a process serves what a site does.
func (s *site) expectFollows(when string, f *site) {
	s.t.Helper()
	f.now, f.resources = s.now, s.resources
	if err := f.follow("p"); err != nil {
		s.t.Errorf("%s: %v", when, err)
	}
	if got, want := f.serves("p"), s.serves("p"); got != want {
		s.t.Errorf("%s: it %s, while the other one %s", when, got, want)
	}
}

// put writes an object as somebody else does.
func (s *site) put(u *unstructured.Unstructured, value any, path ...string) {
	s.t.Helper()
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.memory.Put("kubectl", u); err != nil {
		s.t.Fatal(err)
	}
}

// revisionsOf returns the PackageRevisions with a label.
func (s *site) revisionsOf(label string) []*unstructured.Unstructured {
	s.t.Helper()
	found, err := s.memory.ListLive(s.t.Context(), cluster.Selection{Kind: RevisionKind, Labels: map[string]string{label: "p"}})
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// The revision that is known of a content may be gone, because a later one has the same content.
func TestWhoFollowsFindsTheContentInWhicheverRevisionIsLeft(t *testing.T) {
	t.Parallel()
	s := newFollowedSite(t)
	along, limit := s.follower(), map[string]any{"revisionHistoryLimit": int64(2)}
	for _, name := range []string{"a", "b", "a", "b", "c", "a"} {
		s.decide(text("Thing", name), limit)
		s.expectFollows(name, along)
	}
}

// Anybody who may write a revision may write its annotations, but not what its files are.
func TestWhoFollowsDoesNotBelieveTheAnnotationsOfARevision(t *testing.T) {
	t.Parallel()
	s := newFollowedSite(t)
	s.decide(text("Thing", "a"))
	a := s.states["p"].served.Digest()
	s.decide(text("Thing", "b"))
	for _, u := range s.revisionsOf(crd.PackageLabel) {
		if digest, _, _ := unstructured.NestedString(u.Object, "spec", "digest"); digest == a {
			u.SetAnnotations(map[string]string{numberAnnotation: "1", digestAnnotation: "sha256:forged"})
			s.put(u, digest, "spec", "digest")
		}
	}
	s.put(s.get("p"), "sha256:forged", "status", "digest")
	f := s.follower()
	if err := f.follow("p"); err == nil || f.states["p"].served != nil {
		t.Errorf("the digest of the status is that of no content, and it %s", f.serves("p"))
	}
}

// Pods with --require-signatures come before shard 0 has verified anything: it notes that in the revision, and not in the status.
func TestWhoFollowsServesWhatWasVerifiedSince(t *testing.T) {
	t.Parallel()
	key := registrytest.NewKey(t)
	f := newFetchingSite(t)
	f.apply("p", f.spec(":v0.1.0"))
	f.step()
	f.registry.Sign(t, key, moduleRepository, f.digest)
	f.policy = f.policyOf(key, "")
	follower := f.follower()
	follower.Registries = registry.New(registry.Options{Env: f.registry.Env(t), Now: func() time.Time { return f.now }, Policy: f.policy})
	if err := follower.follow("p"); err == nil || follower.states["p"].served != nil {
		t.Fatalf("what nobody has verified is served: %s", follower.serves("p"))
	}
	f.restart()
	f.step()
	f.expectFollows("verified", follower)
}

// refusing is a cluster that refuses deletions as long as it is told to.
type refusing struct {
	cluster.Cluster

	deletions bool
}

func (c *refusing) Delete(ctx context.Context, ref cluster.Ref, uid types.UID) error {
	if c.deletions {
		return errors.New("no")
	}
	return c.Cluster.Delete(ctx, ref, uid)
}

func TestTheContentOfACanaryIsKeptAsLongAsItIsTried(t *testing.T) {
	t.Parallel()
	share := map[string]any{"canary": map[string]any{"share": "50%", "readyFor": "1h"}}
	begin := func(t *testing.T) (*site, *refusing) {
		t.Helper()
		s := newFollowedSite(t)
		revisions := &refusing{Cluster: s.memory}
		s.Revisions = revisions
		s.decide(text("Thing", "a"))
		s.resources = []Resource{{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "x"}, UID: "uid", Ready: true, Digest: s.states["p"].served.Digest()}}
		s.decide(text("Thing", "b"), share)
		if n := len(s.revisionsOf(triedLabel)); n != 1 {
			t.Fatalf("%d contents are kept", n)
		}
		return s, revisions
	}
	for name, tc := range map[string]struct {
		reason string
		do     func(s *site, revisions *refusing)
		kept   int
	}{
		"SomebodyDeletesIt": {"who begins to follow needs it", func(s *site, _ *refusing) {
			u := s.revisionsOf(triedLabel)[0]
			if err := s.memory.Delete(s.t.Context(), cluster.RefOf(u), u.GetUID()); err != nil {
				s.t.Fatal(err)
			}
			s.now = s.now.Add(triedAgain)
			s.decide(text("Thing", "b"), share)
			s.expectFollows("it begins", s.follower())
		}, 1},
		"ItsDeletionIsRefusedOnce": {"the status says already that it has ended", func(s *site, revisions *refusing) {
			revisions.deletions = true
			s.apply("p", text("Thing", "a"))
			if err := s.step("p"); err == nil {
				s.t.Error("nothing was refused")
			}
			revisions.deletions = false
			s.decide(text("Thing", "a"))
		}, 0},
		"ItEndsAfterARestart": {"the process before has kept it", func(s *site, _ *refusing) {
			s.restart()
			s.Followed = true
			s.decide(text("Thing", "a"))
		}, 0},
		"ItEndsWithoutShards": {"nobody follows any more", func(s *site, _ *refusing) {
			s.restart()
			s.decide(text("Thing", "a"))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, revisions := begin(t)
			tc.do(s, revisions)
			if n := len(s.revisionsOf(triedLabel)); n != tc.kept {
				t.Errorf("%s: %d contents are kept", tc.reason, n)
			}
		})
	}
}

// Who edits content and selector at once means the next content.
func TestWhoFollowsChoosesNothingByASelectorThatNobodyHasReadYet(t *testing.T) {
	t.Parallel()
	s := newFollowedSite(t)
	canaryOf := func(tier string) map[string]any {
		return map[string]any{"canary": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"tier": tier}}, "readyFor": "1h"}}
	}
	s.decide(text("Thing", "a"))
	digest := s.states["p"].served.Digest()
	tests := Resource{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "x"}, UID: "x", Ready: true, Digest: digest, Labels: map[string]string{"tier": "test"}}
	live := Resource{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "y"}, UID: "y", Ready: true, Digest: digest, Labels: map[string]string{"tier": "live"}}
	s.resources = []Resource{tests, live}
	s.decide(text("Thing", "b"), canaryOf("test"))
	along := s.follower()
	s.expectFollows("a canary", along)
	tests.Digest = s.states["p"].canary.digest
	s.resources = []Resource{tests, live}

	next := text("Thing", "c")
	maps.Copy(next, canaryOf("live"))
	s.apply("p", next)
	for who, f := range map[string]*site{"it has followed": along, "it begins": s.follower()} {
		f.now, f.resources = s.now, s.resources
		if err := f.follow("p"); err != nil {
			t.Errorf("%s: %v", who, err)
		}
		if c := f.canary; c == nil || !c.Selects(tests) || c.Selects(live) {
			t.Errorf("%s: the content before would get to other resources, or away from its own: %s", who, f.serves("p"))
		}
	}
	if err := s.step("p"); err != nil {
		t.Fatal(err)
	}
	s.expectFollows("it is read", along)
	if c := along.canary; c == nil || !c.Selects(live) {
		t.Error("the next canary has not begun")
	}
}

// A forged status may name an old revision whose kind another Package serves by now.
func TestWhoFollowsLeavesTheKindOfAnotherPackageAsItIs(t *testing.T) {
	t.Parallel()
	s := newFollowedSite(t)
	account := map[string]any{"serviceAccountName": "weak", "serviceAccountNamespace": "ns"}
	s.decide(text("Other", "a"), account)
	old := s.states["p"].served.Digest()
	s.decide(text("Thing", "a"), account)
	s.apply("q", text("Other", "b"))
	if err := s.step("q"); err != nil {
		t.Fatal(err)
	}
	f := s.follower()
	for _, name := range []string{"q", "p"} {
		if err := f.follow(name); err != nil {
			t.Fatal(err)
		}
	}
	s.put(s.get("p"), old, "status", "digest")
	if err := f.follow("p"); err == nil {
		t.Error("it does not say so")
	}
	if as := f.actsAs[schema.GroupKind{Group: "example.com", Kind: "Other"}]; as != (object.Account{}) {
		t.Errorf("the resources of the other Package are served as %s", as)
	}
	if st := f.states["p"].served; st == nil || st.GroupVersionKind().Kind != "Thing" {
		t.Error("its own kind is not served any more")
	}
}

// Somebody may have taken the finalizer away.
func TestWhoBeginsToFollowACanaryWritesNoFinalizer(t *testing.T) {
	t.Parallel()
	s := newFollowedSite(t)
	s.decide(text("Thing", "a"))
	s.resources = []Resource{{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "x"}, UID: "x", Ready: true, Digest: s.states["p"].served.Digest()}}
	s.decide(text("Thing", "b"), map[string]any{"canary": map[string]any{"share": "50%", "readyFor": "1h"}})
	u := s.get("p")
	u.SetFinalizers(nil)
	if _, err := s.memory.Put("kubectl", u); err != nil {
		t.Fatal(err)
	}
	s.expectFollows("without the finalizer", s.follower())
}

// What serves nothing keeps no kind.
func TestWhoFollowsAPackageThatServesNothingMoreServesAnotherOneOfItsKind(t *testing.T) {
	t.Parallel()
	s := newFollowedSite(t)
	s.decide(text("Thing", "a"))
	f := s.follower()
	s.expectFollows("the first", f)
	u := s.get("p")
	unstructured.RemoveNestedField(u.Object, "status", "digest")
	if _, err := s.memory.Put("kubectl", u); err != nil {
		t.Fatal(err)
	}
	if err := f.follow("p"); err != nil {
		t.Fatal(err)
	}
	s.restart() // the process that decides has no claim of it either
	s.put(u, "Gone", "status", "kind")
	s.apply("q", text("Thing", "b"))
	if err := s.step("q"); err != nil {
		t.Fatal(err)
	}
	if err := f.follow("q"); err != nil || f.states["q"].served == nil {
		t.Errorf("the second is not served: %v", err)
	}
}

// A process of another version may find faults in the content of a canary that shard 0 tries.
func TestWhoBeginsToFollowServesBesideACanaryThatItCannotTry(t *testing.T) {
	t.Parallel()
	s := newFollowedSite(t)
	s.decide(text("Thing", "a"))
	served := s.states["p"].served.Digest()
	s.resources = []Resource{{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "x"}, UID: "x", Ready: true, Digest: served}}
	s.decide(text("Thing", "b"), map[string]any{"canary": map[string]any{"share": "50%", "readyFor": "1h"}})
	f := s.follower()
	f.resources, f.spoilt = s.resources, s.states["p"].canary.digest
	if err := f.follow("p"); err == nil {
		t.Error("it does not say so")
	}
	if st := f.states["p"]; st.served == nil || st.served.Digest() != served || st.servedCanary != nil {
		t.Errorf("it %s", f.serves("p"))
	}
}
