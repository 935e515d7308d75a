package packages

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/registry"
	"operetta.dev/engine/status"
	"operetta.dev/test/registrytest"
)

// unlisted is a cluster whose revisions cannot be listed.
type unlisted struct{ cluster.Cluster }

func (unlisted) ListLive(context.Context, cluster.Selection) ([]*unstructured.Unstructured, error) {
	return nil, errors.New("no")
}

// TestWhoFollowsGoesOnWhileNobodyCanSayWhatToServe has the process that decides begin again in various ways, and says what another
// one does that has followed it before, and one that begins then.
func TestWhoFollowsGoesOnWhileNobodyCanSayWhatToServe(t *testing.T) {
	t.Parallel()
	wrong := map[string]any{"source": map[string]any{"inline": map[string]any{"main.cue": "package p\nx: 1\nx: 2\n"}}}
	rows := map[string]struct {
		// restart is what meets the process that decides when it begins again.
		restart func(*site)
		goesOn  bool
		reason  string
	}{
		"the worker that checks it dies": {
			restart: func(s *site) { s.dying = s.get("p").Object["status"].(map[string]any)["digest"].(string) },
			goesOn:  true,
			reason:  "nothing is known of the content that was not known before",
		},
		"it dies, and the present content is broken": {
			restart: func(s *site) {
				s.dying = s.get("p").Object["status"].(map[string]any)["digest"].(string)
				s.apply("p", wrong)
			},
			goesOn: true,
			reason: "a broken content changes nothing",
		},
		"the revisions cannot be listed": {
			restart: func(s *site) {
				s.apply("p", wrong)
				s.Revisions = unlisted{s.memory}
			},
			goesOn: true,
			reason: "the API server may answer later",
		},
		"its definition cannot be installed for now": {
			restart: func(s *site) { s.installed = errors.New("the API server is overloaded") },
			goesOn:  true,
			reason:  "the definition that is there is the one of what is served",
		},
		"its check finds faults": {
			restart: func(s *site) { s.spoilt = s.get("p").Object["status"].(map[string]any)["digest"].(string) },
			reason:  "a newer engine refuses it, for all resources alike",
		},
		"another package has its kind": {
			restart: func(s *site) { s.serveFolder(true) },
			reason:  "two packages of one kind would reconcile against each other",
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFollowedSite(t)
			along := s.follower()
			s.decide(text("Thing", "a"))
			s.expectFollows("at first", along)
			was := along.states["p"].served.Digest()
			s.restart()
			s.Followed = true
			row.restart(s)
			_ = s.step("p") // an error is tried again
			if s.states["p"].served != nil {
				t.Fatalf("the process that has begun again %s", s.serves("p"))
			}
			if err := along.follow("p"); err != nil {
				t.Errorf("it has followed: %v", err)
			}
			if got := along.states["p"].served != nil && along.states["p"].served.Digest() == was; got != row.goesOn {
				t.Errorf("%s: it has followed, and %s", row.reason, along.serves("p"))
			}
			late := s.follower()
			late.dying = s.dying
			if err := late.follow("p"); err != nil || late.states["p"].served != nil {
				t.Errorf("it begins, and %s: %v", late.serves("p"), err)
			}

			// It passes.
			s.dying, s.spoilt, s.Revisions, s.installed = "", "", s.memory, nil
			s.serveFolder(false)
			s.restart()
			s.Followed = true
			s.decide(text("Thing", "b"))
			s.expectFollows("after that", along)
			before, _, _ := unstructured.NestedMap(s.get("p").Object, "status")
			if c := status.Condition(before, conditionUndecided); c != nil {
				t.Errorf("the status still says %v", c)
			}
		})
	}
}

// Whoever may write the status of a Package can have nothing served by it that a process has not checked and serves already.
func TestAForgedWordThatNothingIsDecidedServesNothing(t *testing.T) {
	t.Parallel()
	s := newFollowedSite(t)
	s.decide(text("Thing", "a"))
	u := s.get("p")
	unstructured.RemoveNestedField(u.Object, "status", "digest")
	s.put(u, []any{map[string]any{
		"type": conditionUndecided, "status": "True", "reason": string(ReasonCheckFailed), "message": "", "lastTransitionTime": "2026-11-25T00:00:00Z",
	}}, "status", "conditions")
	f := s.follower()
	if err := f.follow("p"); err != nil || f.states["p"].served != nil {
		t.Errorf("it %s: %v", f.serves("p"), err)
	}
}

// A demand for signatures is a decision: what nobody has verified is not served by anybody.
func TestWhoFollowsDoesNotGoOnWithWhatIsNotAcceptedAnyMore(t *testing.T) {
	t.Parallel()
	key := registrytest.NewKey(t)
	f := newFetchingSite(t)
	f.Followed = true
	f.apply("p", f.spec(":v0.1.0"))
	f.step()
	follower := f.follower()
	follower.Registries = registry.New(registry.Options{Env: f.registry.Env(t), Now: func() time.Time { return f.now }})
	if err := follower.follow("p"); err != nil || follower.states["p"].served == nil {
		t.Fatalf("it %s: %v", follower.serves("p"), err)
	}
	f.policy = f.policyOf(key, "")
	f.restart()
	f.Followed = true
	f.step()
	if f.states["p"].served != nil {
		t.Fatalf("what nobody has signed is served: %s", f.serves("p"))
	}
	if err := follower.follow("p"); err != nil || follower.states["p"].served != nil {
		t.Errorf("it %s: %v", follower.serves("p"), err)
	}
}
