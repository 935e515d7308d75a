package packages

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/rollout"
)

// readOnly is a cluster to which nobody may write.
type readOnly struct {
	cluster.Cluster

	t *testing.T
}

func (c readOnly) Apply(context.Context, *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	c.t.Error("a process that follows applies an object")
	return nil, nil
}

func (c readOnly) ApplyStatus(context.Context, *unstructured.Unstructured) error {
	c.t.Error("a process that follows writes a status")
	return nil
}

func (c readOnly) ApplyFinalizers(context.Context, *unstructured.Unstructured) error {
	c.t.Error("a process that follows writes finalizers")
	return nil
}

func (c readOnly) Delete(context.Context, cluster.Ref, types.UID) error {
	c.t.Error("a process that follows deletes an object")
	return nil
}

func (c readOnly) Record(*unstructured.Unstructured, rollout.Event) {
	c.t.Error("a process that follows records an event")
}

// follower returns a process that follows a site.
func (s *site) follower() *site {
	out := &site{t: s.t, memory: s.memory, now: s.now, maps: s.maps, actsAs: map[schema.GroupKind]object.Account{}}
	out.resources, out.definitionOf = s.resources, s.definitionOf
	out.restart()
	only := readOnly{s.memory, s.t}
	out.Recorder, out.Cluster, out.Revisions = only, only, only
	return out
}

// follow takes a process that follows as far as it goes.
func (s *site) follow(name string) error {
	for {
		_, err := s.Follow(s.t.Context(), types.NamespacedName{Name: name})
		if !s.examining(name) {
			return err
		}
		select {
		case <-s.enqueue:
		case <-time.After(time.Minute):
			s.t.Fatal("an examination does not end")
		}
	}
}

// serves says what the Server of a process has of a Package.
func (s *site) serves(name string) string {
	st := s.states[name]
	if st == nil {
		return "nothing is known"
	}
	out := "serves nothing"
	if st.served != nil {
		out = "serves " + st.served.GroupVersionKind().Kind + " " + st.served.Digest() + ", telling " + fmt.Sprintf("%q", st.outdated)
	}
	if st.servedCanary != nil {
		out += ", with " + st.servedCanary.candidate.Program.Digest() + " for " + st.canary.selection()
	}
	if st.broken != "" {
		out += ", broken: " + st.broken
	}
	if account := s.actsAs[schema.GroupKind{Group: "example.com", Kind: "Thing"}]; account != (object.Account{}) {
		out += ", as " + account.String()
	}
	return out
}

// histories are what may happen to a Package, by their names.
func histories() map[string][]func(*site) {
	wrong := map[string]any{"source": map[string]any{"inline": map[string]any{"main.cue": "package p\nx: 1\nx: 2\n"}}}
	with := func(spec map[string]any, more map[string]any) map[string]any {
		spec = maps.Clone(spec)
		maps.Copy(spec, more)
		return spec
	}
	apply := func(spec map[string]any) func(*site) { return func(s *site) { s.apply("p", spec) } }
	share := map[string]any{"canary": map[string]any{"share": "50%", "readyFor": "1m"}}
	labels := map[string]any{"canary": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"tier": "test"}}, "readyFor": "1m"}}
	later := func(d time.Duration) func(*site) { return func(s *site) { s.now = s.now.Add(d) } }
	have := func(digest string, ready bool) func(*site) {
		return func(s *site) {
			if digest == "tried" {
				digest = s.states["p"].canary.digest
			}
			s.resources = nil
			for i := range 4 {
				u := Resource{NamespacedName: types.NamespacedName{Namespace: "ns", Name: fmt.Sprint(i)}, UID: types.UID(fmt.Sprint("uid", i)), Labels: map[string]string{"tier": "test"}, Ready: ready, Failed: !ready}
				switch {
				case digest == "":
					u.Digest = s.states["p"].served.Digest()
				case s.states["p"].canary.chosen(u):
					u.Digest = digest
				default:
					u.Digest, u.Ready, u.Failed = s.states["p"].served.Digest(), true, false
				}
				s.resources = append(s.resources, u)
			}
		}
	}
	remove := func(s *site) {
		s.resources = nil
		u := s.get("p")
		if err := s.memory.Delete(s.t.Context(), cluster.RefOf(u), u.GetUID()); err != nil {
			s.t.Fatal(err)
		}
	}
	return map[string][]func(*site){
		"a change, and the same again": {apply(text("Thing", "a")), apply(text("Thing", "b")), apply(text("Thing", "a"))},
		"a broken change and its end":  {apply(text("Thing", "a")), apply(wrong), apply(text("Thing", "b"))},
		"a broken beginning":           {apply(wrong), apply(text("Thing", "a"))},
		"held back":                    {apply(text("Thing", "a")), apply(with(text("Thing", "b"), map[string]any{"update": "Manual"})), apply(with(text("Thing", "b"), map[string]any{"paused": true}))},
		"a canary that is promoted":    {apply(text("Thing", "a")), have("", true), apply(with(text("Thing", "b"), share)), have("tried", true), later(time.Second), later(time.Hour), later(time.Second)},
		"a canary that goes back":      {apply(text("Thing", "a")), have("", true), apply(with(text("Thing", "b"), share)), have("tried", false), later(time.Second), apply(with(text("Thing", "c"), share))},
		"a canary by labels":           {apply(text("Thing", "a")), have("", true), apply(with(text("Thing", "b"), labels)), apply(text("Thing", "b"))},
		"another kind":                 {apply(text("Thing", "a")), apply(text("Other", "a"))},
		"a ServiceAccount":             {apply(with(text("Thing", "a"), map[string]any{"serviceAccountName": "x", "serviceAccountNamespace": "ns"})), apply(text("Thing", "a"))},
		"a spec of a newer version":    {apply(text("Thing", "a")), apply(with(text("Thing", "b"), map[string]any{"newer": true})), apply(text("Thing", "b"))},
		"a deletion":                   {apply(text("Thing", "a")), remove},
	}
}

func TestWhoFollowsServesWhatIsServedAndWritesNothing(t *testing.T) {
	t.Parallel()
	for name, steps := range histories() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.definitionOf = func(string) *apiextensionsv1.CustomResourceDefinition {
				return &apiextensionsv1.CustomResourceDefinition{}
			}
			s.Followed = true
			along := s.follower()
			for i, step := range steps {
				step(s)
				if err := s.step("p"); err != nil {
					t.Logf("step %d: %v", i, err)
				}
				// One that begins now comes to the same as one that has followed all along.
				for who, f := range map[string]*site{"it has followed": along, "it begins": s.follower()} {
					f.now, f.resources = s.now, s.resources
					if err := f.follow("p"); err != nil {
						t.Errorf("step %d: %s: %v", i, who, err)
					}
					if got, want := f.serves("p"), s.serves("p"); got != want && f.states["p"] != nil {
						t.Errorf("step %d: %s, and it %s, while the other one %s", i, who, got, want)
					}
				}
			}
		})
	}
}

func TestWhoFollowsWaitsForAContentThatIsNotKept(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.apply("p", text("Thing", "a"))
	if err := s.step("p"); err != nil {
		t.Fatal(err)
	}
	u := s.get("p")
	if err := unstructured.SetNestedField(u.Object, "sha256:0", "status", "digest"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.memory.Put("kubectl", u); err != nil {
		t.Fatal(err)
	}
	f := s.follower()
	if err := f.follow("p"); err == nil || f.states["p"].served != nil {
		t.Errorf("a forged status is followed: %s", f.serves("p"))
	}
}
